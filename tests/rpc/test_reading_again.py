"""Calls that follow one another: a thread that will soon read again keeps the stream, and the loop takes it back later."""

import pytest
from helpers.lines import in_thread, is_asleep
from helpers.threads import until as wait_until
from telegrad.rpc.lanes import spinning


@pytest.fixture
def kept(line, monkeypatch):
    """Let threads keep the stream from the second turn on."""
    monkeypatch.setattr(spinning, "OFTEN_SECONDS", 60.0)
    monkeypatch.setattr(spinning, "QUICK_SECONDS", 60.0)
    monkeypatch.setattr(spinning, "STEADY", 1)


def test_a_thread_that_soon_reads_again_keeps_the_stream_until_nobody_has_read_for_a_while(line, kept, monkeypatch):
    for number in range(3):
        line.send(number)
        assert line.futures[number].wait() == number
    assert line.watched == [False, True, False], "the first time it is not known"
    monkeypatch.setattr(spinning, "AWAY_SECONDS", 60.0)
    assert line.reading.look() and line.reading.look() and line.watched[-1] is False, "somebody has read lately"
    monkeypatch.setattr(spinning, "AWAY_SECONDS", 0.0)
    assert not line.reading.look() and line.watched[-1] is True
    assert not line.reading.look()
    line.progress = lambda: 7
    line.reading.pause()
    line.progress = lambda: 8
    assert line.reading.look() and not line.reading.look(), "what was read is used bit by bit"
    line.send(3)
    line.reading.by_loop()
    assert line.futures[3].done()


def test_the_loop_does_not_take_the_stream_from_a_thread_that_sleeps(line, kept):
    results = []
    thread = in_thread(line.futures[0].wait, results)
    wait_until(is_asleep(line))
    assert not line.reading.look() and line.watched == [False]
    line.send(0)
    thread.join(20)
    assert results == [0]


def test_the_loop_looks_again_at_a_thread_that_sleeps_only_if_calls_still_end(line, kept):
    """Each time that it begins to look again costs a wake-up of the loop."""
    line.send(1)
    line.futures[1].wait()
    thread = in_thread(line.futures[0].wait, [])
    wait_until(is_asleep(line))
    assert line.reading.look() and not line.reading.look()
    line.send(0)
    thread.join(20)


def test_the_loop_waits_for_the_turn_of_a_thread_that_leaves(line, monkeypatch):
    """Told once: while the turn was held, the loop was told again and again that there is something to read."""
    monkeypatch.setattr(spinning, "LEAVING_SECONDS", 60.0)
    line.send(0)
    told = []

    def tell(wanted):
        told.append(wanted)
        if wanted:  # the loop may run from here on, before this thread has released the turn
            loops.append(in_thread(line.reading.by_loop, []))

    loops = []
    line.watch_input = tell
    line.reading.linger(lambda: True)
    loops[0].join(20)
    assert told == [False, True] and line.readers == loops and line.futures[0].done()


def test_a_thread_that_finds_nothing_gives_the_stream_back_at_once(line, kept):
    for _ in range(2):
        line.reading.linger(lambda: False)
    assert line.watched == [False, True] * 2


def test_a_thread_keeps_the_stream_of_a_busy_connection(line):
    line.reading.crowded = lambda: True
    line.send(0)
    line.futures[0].wait()
    assert line.watched == [False] and line.reading._looker.ticking


def test_a_thread_that_has_served_sleeps_at_the_stream_for_the_next_request(line, monkeypatch):
    monkeypatch.setattr(spinning, "DOZE_SECONDS", 60.0)
    thread = in_thread(lambda: line.reading.linger(line.futures[0].done), [])
    wait_until(is_asleep(line))
    line.send(0)
    thread.join(20)
    assert line.readers == [thread] and not thread.is_alive()


def test_a_thread_that_sends_much_reads_once_and_does_not_wait(line):
    line.reading.glance()
    line.reading.crowded = lambda: True
    for number in (0, 1):
        line.send(number)
    line.reading.glance()
    assert [future.done() for future in line.futures] == [True, True, False, False]
    assert line.watched == [False, True, False] and not line.ended
