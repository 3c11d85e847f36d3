"""Turns of reading a stream: who waits reads, for others too, and gives the stream back however the wait ends."""

import signal
import threading

import pytest
from helpers.interrupts import first_signal, interrupt
from helpers.lines import Line, in_thread, is_asleep
from helpers.threads import until as wait_until
from telegrad.core.futures import thread_role
from telegrad.rpc.lanes import spinning


def test_a_thread_that_waits_reads_until_its_own_future_is_done(line):
    for number in (1, 2, 0, 3):
        line.send(number)
    assert line.futures[0].wait() == 0
    assert [future.done() for future in line.futures] == [True] * 4  # all came in one read
    assert set(line.readers) == {threading.current_thread()}
    assert line.watched == [False, True] and not line.ended


def test_the_loop_reads_what_nobody_waits_for(line):
    line.send(2)
    line.reading.by_loop()
    assert line.futures[2].done() and line.watched == []


def test_the_loop_reads_once_for_one_frame_and_on_while_several_come(line):
    line.send(0)
    line.reading.by_loop()
    assert line.futures[0].done() and line.reads == 1
    line.send(1)
    line.send(2)
    line.reading.by_loop()
    assert line.futures[1].done() and line.futures[2].done() and line.reads == 3


def test_a_thread_that_waits_in_vain_leaves_the_stream_to_the_loop(line):
    with pytest.raises(TimeoutError):
        line.futures[0].wait(0.001)
    assert line.watched[-1] is True
    line.send(0)
    line.reading.by_loop()
    assert line.futures[0].wait() == 0


def test_a_reader_that_sleeps_is_woken_by_what_comes(line):
    results = []
    thread = in_thread(line.futures[0].wait, results)
    wait_until(is_asleep(line))
    line.send(0)
    thread.join(20)
    assert results == [0]


def test_a_reader_that_sleeps_is_woken_when_its_future_completes_in_another_way(line):
    results = []
    thread = in_thread(line.futures[0].wait, results)
    wait_until(is_asleep(line))
    line.futures[0].set_result("otherwise")
    thread.join(20)
    assert results == ["otherwise"] and line.watched == [False, True]


def test_one_thread_reads_for_all_and_then_another(line):
    results, threads = [], []
    for future in line.futures[:3]:
        threads.append(in_thread(future.wait, results))
        wait_until(is_asleep(line))
    wait_until(lambda: len(line.reading.followers) == 2)
    for number in (1, 0, 2):  # of a follower, of the reader, of the next reader
        line.send(number)
        wait_until(lambda number=number: number in results)
    for thread in threads:
        thread.join(20)
    assert line.watched[-1] is True and not line.reading.followers
    assert line.readers[0] is threads[0] and line.readers[-1] is threads[2]


def test_a_follower_whose_time_is_up_passes_its_turn_on(line):
    results = []
    first = in_thread(line.futures[0].wait, results)
    wait_until(is_asleep(line))
    with pytest.raises(TimeoutError):
        line.futures[1].wait(0.001)
    third = in_thread(line.futures[2].wait, results)
    wait_until(lambda: line.reading.followers)
    line.send(0)
    first.join(20)
    line.send(2)
    third.join(20)
    assert results == [0, 2]


@pytest.fixture
def queue(line):
    """Return the results and threads of three waits: the first thread reads and sleeps, the others wait in line."""
    results, threads = [], []
    for number, future in enumerate(line.futures[:3]):
        threads.append(in_thread(future.wait, results))
        wait_until(lambda number=number: is_asleep(line)() and len(line.reading.followers) == number)
    return results, threads


def test_a_thread_that_was_to_read_and_came_too_late_stays_in_line(line, queue):
    results, threads = queue
    line.reading.followers.popleft().release()  # the second, whom a reader asked; but the first reads
    wait_until(lambda: len(line.reading.followers) == 2)
    for number in (0, 2, 1):
        line.send(number)
        wait_until(lambda number=number: number in results)
    for thread in threads:
        thread.join(20)
    assert line.readers == [threads[0], threads[2], threads[1]]


def test_a_thread_that_need_not_read_any_more_wakes_no_other_while_one_reads(line, queue):
    results, threads = queue
    line.reading.followers.popleft()  # the second is to read; its answer comes first
    line.futures[1].set_result("otherwise")
    threads[1].join(20)
    assert len(line.reading.followers) == 1
    for number in (0, 2):
        line.send(number)
        wait_until(lambda number=number: number in results)
    for thread in threads:
        thread.join(20)
    assert line.readers == [threads[0], threads[2]] and not line.reading.followers


def test_one_thread_writes_for_all_while_many_wait(line, queue, monkeypatch):
    results, threads = queue
    flushes = []

    def flush():
        flushes.append(threading.current_thread())
        line.reading._unsent.clear()

    line.reading._unsent, line.flush_waiting = [], flush
    monkeypatch.setattr(spinning, "MANY_FOLLOWERS", 2)
    assert not line.reading.writes_soon(), "the thread that reads sleeps"

    def deliver(frame):
        """Send, as other threads do while this one reads."""
        if line.reading.writes_soon():
            line.reading._unsent.append(frame)
        Line.deliver(line, frame)

    line.reading._deliver = deliver
    line.send(3)  # nobody waits for it: the thread reads on
    wait_until(lambda: flushes)
    assert flushes == [threads[0]]
    for number in (0, 1, 2):
        line.send(number)
        wait_until(lambda number=number: number in results)
    for thread in threads:
        thread.join(20)
    assert flushes[:2] == [threads[0]] * 2, "also when it has read what it waits for"


def test_what_is_read_must_not_be_waited_for_meanwhile(line):
    """Code that runs in the reader's thread, as the agent's does, would wait for itself."""
    refused = []

    def deliver(frame):
        try:
            line.futures[1].wait()
        except RuntimeError as error:
            refused.append(error)
        line.futures[0].set_result(None)

    line.reading._deliver = deliver
    line.send(0)
    line.futures[0].wait()
    assert len(refused) == 1 and thread_role.blocker is None


def test_the_end_of_the_stream_ends_the_reading_and_not_the_waiting(line):
    results = []
    thread = in_thread(line.futures[0].wait, results)
    wait_until(is_asleep(line))
    line.far.close()
    wait_until(lambda: line.ended)
    assert line.ended == [None] and not results
    line.futures[0].set_result("the connection is lost")
    thread.join(20)
    assert results == ["the connection is lost"]


def test_a_stream_is_closed_when_its_reader_has_left(line):
    results = []
    thread = in_thread(line.futures[0].wait, results)
    wait_until(is_asleep(line))
    line.close()
    wait_until(lambda: line.near.fileno() < 0)
    line.futures[0].set_result("closed")
    thread.join(20)
    assert results == ["closed"]


def test_what_may_run_user_code_runs_when_the_reader_has_given_the_stream_back(line):
    """``Caller.complete`` leaves the opening of an answer to the thread that waits for it."""
    owned = []

    def task():
        owned.append((line.reading._turn._is_owned(), thread_role.blocker))
        line.futures[0].set_result("opened")

    def deliver(frame):
        assert thread_role.awaited is line.futures[0]
        thread_role.task = task

    line.reading._deliver = deliver
    line.send(0)
    assert line.futures[0].wait() == "opened"
    assert owned == [(False, None)] and thread_role.task is None and thread_role.awaited is None


def test_ctrl_c_while_a_reader_sleeps_costs_nothing(line, thread):
    with first_signal(signal.SIGINT, interrupt) as send:
        interrupting = thread(lambda: wait_until(is_asleep(line)) and send())
        with pytest.raises(KeyboardInterrupt):
            line.futures[0].wait()
        interrupting.join(20)
    assert line.watched == [False, True] and not line.ended and thread_role.blocker is None
    line.send(0)
    assert line.futures[0].wait() == 0


def test_a_signal_handler_may_wait_while_its_thread_sleeps(line, thread):
    results = []

    def others():
        wait_until(is_asleep(line))
        send()
        wait_until(lambda: line.reading._sleeper._asleep == 2)
        line.send(1)
        wait_until(lambda: results)
        line.futures[0].set_result("otherwise")

    with first_signal(signal.SIGUSR1, lambda: results.append(line.futures[1].wait(20))) as send:
        signalling = thread(others)
        assert line.futures[0].wait(20) == "otherwise"
        signalling.join(20)
    assert results == [1] and not line.reading._turn._is_owned()


def test_ctrl_c_while_frames_are_read_gives_the_session_up(line):
    """Nobody knows which of them were."""
    line.reading._deliver = lambda frame: signal.raise_signal(signal.SIGINT)
    line.send(0)
    with pytest.raises(KeyboardInterrupt):
        line.futures[0].wait()
    assert [type(error) for error in line.ended] == [ConnectionResetError]
    assert thread_role.blocker is None and not line.reading._turn._is_owned()


def test_a_thread_that_gives_frames_to_the_agent_does_not_read_more_of_them(line):
    line.reading._deliver = lambda frame: line.reading.glance() or line.futures[frame[0]].set_result(None)
    line.send(0)
    line.send(1)
    line.futures[1].wait()
    assert line.watched == [False, True]
