"""Timers: they run in order and in time, leave when they are cancelled, and stand what is done at the same time."""

import asyncio
import contextvars
import os
import random
import signal
import threading
import weakref

import pytest
from helpers.loops import ManualLoop
from telegrad.rpc.threads.ioloop import LoopThread
from telegrad.rpc.threads.timers import FEW_TIMERS, TICK_SECONDS, UNHURRIED_SECONDS, Timers


@pytest.fixture
def loop():
    return ManualLoop()


@pytest.fixture
def timers(loop):
    timers = Timers(lambda: loop.time)
    timers.start(loop)
    loop.advance()
    return timers


@pytest.fixture
def real():
    """Timers on the thread of a real loop."""
    thread = LoopThread("loop of a test")
    timers = Timers(thread.loop.time)
    timers.start(thread.loop)
    yield timers
    timers.close()
    thread.stop()


def test_timers_run_in_the_order_of_their_times(timers, loop):
    ran = []
    for when in (3, 1, 2, 1):
        timers.at(when, ran.append, when)
    loop.advance(0.5)
    assert ran == []
    loop.advance(1.5)
    assert ran == [1, 1, 2]
    loop.advance(9)
    assert ran == [1, 1, 2, 3]


def test_what_is_due_already_runs_at_once(timers, loop):
    ran = []
    loop.advance(5)
    timers.at(2, ran.append, "late")
    timers.after(0, ran.append, "now")
    loop.advance()
    assert ran == ["late", "now"]


def test_a_cancelled_timer_does_not_run_and_lets_go_of_what_it_would_do(timers, loop):
    class Thing:
        pass

    ran, thing = [], Thing()
    gone = weakref.ref(thing)
    timer = timers.after(1, ran.append, thing)
    del thing
    assert timer.pending
    timer.cancel()
    timer.cancel()
    assert gone() is None and not timer.pending
    loop.advance(2)
    assert ran == []


def test_a_timer_that_ran_lets_go_of_what_it_did(timers, loop):
    timer = timers.after(1, [].append, "ran")
    loop.advance(2)
    assert not timer.pending
    timer.cancel()


def test_cancelled_timers_are_not_kept(timers, loop):
    kept = timers.after(60, print)
    before = loop.wake_ups
    for number in range(10_000):
        timers.after(60 + number % 7, print).cancel()
        if loop.wake_ups > before:  # the loop is woken for them now and then
            before = loop.wake_ups
            loop.advance()
    assert len(timers._heap) + len(timers._added) <= 2 * FEW_TIMERS and kept.pending and before < 30


def test_the_loop_is_woken_only_by_a_timer_before_all_others(timers, loop):
    timers.after(1, print)
    before = loop.wake_ups
    for _ in range(100):
        timers.after(60, print).cancel()
    assert loop.wake_ups == before
    timers.after(0.5, lambda: None)
    assert loop.wake_ups == before + 1


def test_a_loop_sleeps_when_all_timers_were_cancelled(timers, loop):
    for number in range(50):
        timers.after(1 + number / 100, print).cancel()
    loop.advance(1)
    assert not loop._later


def test_an_action_may_add_and_cancel_timers(timers, loop):
    ran = []
    second = timers.after(1, ran.append, "second")

    def first():
        second.cancel()
        timers.after(0, ran.append, "third")

    timers.at(0.5, first)
    loop.advance(2)
    assert ran == ["third"]


def test_an_action_that_raises_does_not_stop_the_others(timers, loop, caplog):
    ran = []
    timers.after(1, lambda: 1 / 0)
    timers.after(1, ran.append, "next")
    timers.soon(lambda: 1 / 0)
    timers.soon(lambda: ran.append("soon"))
    loop.advance(2)
    loop.advance(TICK_SECONDS)
    assert ran == ["next", "soon"]
    assert caplog.text.count("an action of an agent failed") == 2


def test_many_timers_leave_the_loop_time_for_its_other_work(timers, loop):
    order = []
    for number in range(1000):
        timers.after(1, order.append, number)
    loop._later.append([1.0, lambda: order.append("I/O")])
    loop.advance(1)
    assert order.index("I/O") < 1000 and len(order) == 1001


def test_timers_wait_for_their_loop(loop):
    timers, ran = Timers(lambda: loop.time), []
    timers.after(1, ran.append, "timer")
    timers.soon(lambda: ran.append("soon"))
    timers.start(loop)
    loop.advance(1)
    loop.advance(TICK_SECONDS)
    assert ran == ["timer", "soon"]


def test_what_is_asked_for_soon_wakes_the_loop_once_in_a_busy_time(timers, loop):
    ran = []
    loop.advance(1)
    before = loop.wake_ups
    for number in range(100):
        timers.soon(lambda number=number: ran.append(number))
        loop.advance(TICK_SECONDS / 10)
    assert loop.wake_ups == before + 1
    loop.advance(TICK_SECONDS)
    assert ran == list(range(100))
    loop.advance(TICK_SECONDS)
    assert not loop._later  # nothing to do: the loop sleeps
    timers.soon(lambda: ran.append("again"))
    loop.advance()
    loop.advance(TICK_SECONDS)
    assert loop.wake_ups == before + 2 and ran[-1] == "again"


def test_what_no_thread_waits_for_is_done_more_and_more_rarely_in_a_busy_time(timers, loop):
    ran = []
    loop.advance(1)
    before = loop.wake_ups
    timers.unhurried(lambda: ran.append(0.0))
    loop.advance()
    loop.advance(TICK_SECONDS)
    assert ran == [0.0]  # little goes on: as soon
    busy, start = 8 * UNHURRIED_SECONDS, loop.time
    while loop.time < start + busy:
        timers.unhurried(lambda now=loop.time: ran.append(loop.time - now))
        loop.advance(TICK_SECONDS / 4)
    loop.advance(UNHURRIED_SECONDS)
    assert TICK_SECONDS < max(ran) < UNHURRIED_SECONDS + 3 * TICK_SECONDS and len(ran) > 4 * 8
    assert loop.wake_ups == before + 1


def test_a_batch_is_handled_together(timers, loop):
    handled = []
    batch = timers.together(handled.append)
    batch.add(1)
    batch.add(2)
    loop.advance()
    loop.advance(TICK_SECONDS)
    batch.add(3)
    batch.flush()
    batch.flush()
    loop.advance(TICK_SECONDS)
    assert handled == [[1, 2], [3]]


def test_a_batch_loses_nothing_that_threads_add(real):
    handled = []
    batch = real.together(handled.extend)
    threads = [threading.Thread(target=lambda: [batch.add(None) for _ in range(5000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = threading.Event()
    real.after(0.02, done.set)
    assert done.wait(10) and len(handled) == 20_000


@pytest.mark.parametrize("how", ["close", "abandon"])
def test_nothing_runs_after_the_end(timers, loop, how):
    ran = []
    timers.after(1, ran.append, 1)
    timers.soon(lambda: ran.append(0))
    loop.advance()
    getattr(timers, how)()
    timers.after(0, ran.append, 2)
    timers.soon(lambda: ran.append(3))
    loop.advance(2)
    assert ran == [] and not loop._later


def test_a_closed_loop_is_no_error():
    thread = LoopThread("loop of a test")
    timers = Timers(thread.loop.time)
    timers.start(thread.loop)
    thread.stop()
    timers.after(0, print)
    timers.soon(print)


def test_an_alarm_rings_at_the_earliest_time_once(timers, loop):
    rings = []
    alarm = timers.alarm(lambda: rings.append(loop.time))
    for when in (3, 1, 2):
        alarm.set(when)
    loop.advance(1)
    loop.advance(5)
    assert rings == [1]
    alarm.set(7)
    loop.advance(1)
    assert rings == [1, 7]


def test_timers_do_not_keep_the_context_of_who_adds_them(real):
    variable = contextvars.ContextVar("variable")
    seen, done = [], threading.Event()
    context = contextvars.copy_context()
    context.run(variable.set, "of a caller")
    context.run(real.after, 0, lambda: (seen.append(variable.get(None)), done.set()))
    assert done.wait(10) and seen == [None]


def test_threads_that_add_and_cancel_at_the_same_time_lose_nothing(real):
    ran, lock = set(), threading.Lock()

    def note(number):
        with lock:
            ran.add(number)

    def work(thread):
        rng = random.Random(thread)
        for number in range(2000):
            timer = real.after(rng.random() / 50, note, (thread, number))
            if number % 2:
                timer.cancel()

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = threading.Event()
    real.after(0.1, done.set)
    assert done.wait(10)
    assert ran >= {(thread, number) for thread in range(4) for number in range(0, 2000, 2)}


def test_a_signal_handler_may_add_timers_while_its_thread_does(real):
    added, ran = [], []
    before = signal.signal(signal.SIGALRM, lambda *_: added.append(real.after(0, ran.append, 1)))
    signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    try:
        for _ in range(20_000):
            real.after(60, print).cancel()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    done = threading.Event()
    real.after(0.05, done.set)
    assert done.wait(10)
    assert added and len(ran) == len(added)


def test_what_is_added_while_the_loop_looks_is_not_forgotten(timers, loop, monkeypatch):
    """A timer that is later than the time at which the loop was to look does not wake it."""
    ran = []
    timers.at(1, print)
    next_time = timers._next_time

    def after_another_has_been_added():
        found = next_time()
        if not ran:
            timers._wake_at = 1.0  # as before the loop came here
            ran.append("added")
            timers.at(2, ran.append, "ran")
        return found

    monkeypatch.setattr(timers, "_next_time", after_another_has_been_added)
    loop.advance(1)
    loop.advance(1)
    assert ran == ["added", "ran"]


def test_a_forked_child_does_not_wake_its_parent(real):
    async def nothing():
        pass

    asyncio.run_coroutine_threadsafe(nothing(), real._loop).result(10)
    child = os.fork()
    if not child:
        real.abandon()
        real.after(0, print)
        real.soon(print)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
