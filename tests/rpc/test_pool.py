"""The thread pool: how many run, who may block, what a thread keeps."""

import threading
import weakref
from functools import partial

import pytest
from helpers.interrupts import INSIDE_LOCKS, OpcodeInterrupter
from helpers.threads import until as wait_until
from telegrad.base.errors import RpcError
from telegrad.core.futures import Future, thread_role
from telegrad.rpc.threads.pool import ThreadPool


@pytest.fixture
def pool():
    pool = ThreadPool(2, "pool")
    yield pool
    assert pool.close(5) == []


class Thing:
    pass


def meet(barrier, thing):
    barrier.wait(5)


def test_a_thread_that_idles_keeps_nothing_of_its_tasks(pool, until, no_collector):
    things = [Thing() for _ in range(6)]
    kept = [weakref.ref(thing) for thing in things]
    for _ in range(3):
        both = threading.Barrier(3)
        for _ in range(2):
            pool.submit(partial(meet, both, things.pop()))
        both.wait(5)
    until(lambda: pool.counts()["idle"] == 2)
    assert [ref() for ref in kept] == [None] * 6


def test_tasks_that_came_while_all_ran_are_begun_together(pool):
    for _ in range(300):
        both = threading.Barrier(3)
        for _ in range(2):
            pool.submit(partial(both.wait, 5))
        both.wait(5)


def test_at_most_size_tasks_run_and_the_others_wait(pool, until):
    gate, running, most = threading.Event(), [], []
    done = [threading.Event() for _ in range(6)]

    def task(event):
        running.append(1)
        most.append(len(running))
        gate.wait(5)
        running.pop()
        event.set()

    for event in done:
        pool.submit(lambda event=event: task(event))
    until(lambda: pool.counts() == {"running": 2, "idle": 0, "blocked": 0, "waiting": 4} and len(running) == 2)
    gate.set()
    assert all(event.wait(5) for event in done)
    assert max(most) == 2


def test_a_task_that_waits_for_a_future_gives_its_place_away(pool, until):
    futures = [Future() for _ in range(50)]
    results = []
    ended = threading.Event()

    def waits(index):
        results.append(futures[index].wait(10))
        if len(results) == len(futures) - 1:
            ended.set()

    for index in range(1, 50):
        pool.submit(lambda index=index: waits(index))
    until(lambda: pool.counts()["blocked"] == 49)
    pool.submit(lambda: [future.set_result(None) for future in futures])
    assert ended.wait(10)
    until(lambda: pool.counts()["blocked"] == pool.counts()["running"] == 0)
    assert pool.counts()["idle"] <= 2  # the others ended


def test_too_many_blocked_threads_are_a_clear_error(until):
    pool = ThreadPool(1, "pool", ceiling=3)
    future = Future()
    for _ in range(3):
        pool.submit(future.wait)
        until(lambda: pool.counts()["running"] == 0 and not pool.counts()["waiting"])
    with pytest.raises(RpcError, match="all 3 threads of 'pool' are blocked"):
        pool.submit(lambda: None)
    future.set_result(None)
    assert pool.close(5) == []


def test_no_more_threads_from_the_system_is_a_clear_error(pool, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RpcError, match="the system gives no more"):
            pool.submit(lambda: None)
    assert pool.counts() == {"running": 0, "idle": 0, "blocked": 0, "waiting": 0}
    event = threading.Event()
    pool.submit(event.set)
    assert event.wait(5)


def test_a_task_that_raises_is_logged_and_its_thread_goes_on(pool, caplog, until):
    event = threading.Event()
    pool.submit(lambda: 1 / 0)
    pool.submit(event.set)
    assert event.wait(5)
    until(lambda: "a task of pool raised" in caplog.text)


def test_a_closed_pool_takes_nothing(pool):
    pool.close(1)
    with pytest.raises(RpcError, match="is closed"):
        pool.submit(lambda: None)


def test_a_closed_pool_tells_what_still_runs(pool, until):
    gate = threading.Event()

    def stuck():
        gate.wait(60)

    pool.submit(stuck)
    until(lambda: pool.counts()["running"])
    try:
        until(lambda: stuck.__code__.co_filename in pool.close(0)[0])
        (place,) = pool.close(0)
    finally:
        gate.set()
    assert place == f"stuck() at {__file__}:{stuck.__code__.co_firstlineno + 1}"


def test_what_was_taken_before_the_end_still_runs(until):
    pool, gate, ended = ThreadPool(1, "pool"), threading.Event(), []
    pool.submit(lambda: gate.wait(5))
    for number in range(10):
        pool.submit(lambda number=number: ended.append(number))
    until(lambda: pool.counts()["waiting"] == 10)
    threading.Timer(0.01, gate.set).start()
    assert pool.close(5) == []
    assert ended == list(range(10))


# -- threads that look for the next task before they idle


class Later:
    """Calls what was put off, when the test says so."""

    def __init__(self):
        self.actions = []

    def __call__(self, seconds, action):
        self.actions.append(action)

    def run(self):
        actions, self.actions = self.actions, []
        for action in actions:
            action()


@pytest.fixture
def later():
    return Later()


@pytest.fixture
def patient(later):
    pool = ThreadPool(2, "pool", call_later=later)
    yield pool
    assert pool.close(5) == []


def test_a_thread_that_lingers_takes_the_next_task(pool):
    lingers, names = threading.Event(), []

    def linger(enough):
        lingers.set()
        wait_until(enough)

    def first():
        names.append(threading.current_thread().name)
        return linger

    done = threading.Event()

    def second():
        names.append(threading.current_thread().name)
        done.set()

    pool.submit(first)
    assert lingers.wait(5)
    pool.submit(second)
    assert done.wait(5)
    assert names == ["pool-1"] * 2


def test_a_thread_that_dozes_has_no_place_and_few_do(pool, until, monkeypatch):
    monkeypatch.setattr("telegrad.rpc.threads.pool.MOST_DOZING", 1)
    wake, refused, ended = threading.Event(), [], threading.Event()

    def doze(enough):
        if not thread_role.blocker.block(wake.wait, 5.0):
            refused.append(1)

    pool.submit(lambda: doze)
    until(lambda: pool.counts() == {"running": 0, "idle": 1, "blocked": 0, "waiting": 0} and pool._dozing)
    assert pool.busy() == 0
    pool.submit(lambda: doze)  # another thread
    until(lambda: refused)
    pool.submit(ended.set)
    assert ended.wait(5)
    wake.set()
    until(lambda: not pool._dozing and not pool._lingering)


def test_a_task_that_lingering_threads_do_not_take_gets_another(pool):
    lingers, done, stay = threading.Event(), threading.Semaphore(0), threading.Event()

    def linger(enough):
        lingers.set()
        assert stay.wait(5)  # it does not look

    pool.submit(lambda: linger)
    assert lingers.wait(5)
    pool.submit(done.release)
    pool.submit(done.release)  # one lingering thread takes one task
    assert done.acquire(timeout=5)
    stay.set()
    assert done.acquire(timeout=5)


def test_tasks_that_come_together_share_a_thread_and_a_long_one_does_not_hold_the_others_up(
    patient, later, until, monkeypatch
):
    monkeypatch.setattr("telegrad.rpc.threads.pool.RECENT_SECONDS", 60.0)
    gate, begun, done = threading.Event(), threading.Event(), threading.Event()

    def long():
        begun.set()
        assert gate.wait(5)

    patient.submit(long)
    assert begun.wait(5)
    patient.submit(done.set)
    assert patient.counts()["waiting"] == 1
    later.run()  # still patient
    assert patient.counts()["waiting"] == 1 and later.actions
    monkeypatch.setattr("telegrad.rpc.threads.pool.RECENT_SECONDS", 0.0)
    later.run()
    assert done.wait(5)
    gate.set()


def test_a_task_that_blocks_gives_its_place_to_those_that_wait_for_its_thread(patient, until, monkeypatch):
    monkeypatch.setattr("telegrad.rpc.threads.pool.RECENT_SECONDS", 60.0)
    future, begun = Future(), threading.Event()

    def waits():
        begun.set()
        future.wait()

    patient.submit(waits)
    assert begun.wait(5)
    patient.submit(partial(future.set_result, None))  # no timer is needed for it
    until(future.done)


def test_a_task_that_a_thread_leaves_to_another_gets_a_third_if_that_takes_long(patient, later, until, monkeypatch):
    monkeypatch.setattr("telegrad.rpc.threads.pool.QUICK_TASK_SECONDS", 60.0)
    first, gate = threading.Event(), threading.Event()
    lingers, begun, done = threading.Event(), threading.Event(), threading.Event()

    def linger(enough):
        lingers.set()
        wait_until(enough)

    def long():
        begun.set()
        assert gate.wait(60)

    def quick():
        assert first.wait(60)

    patient.submit(quick)
    until(lambda: patient._policy.tasks == 1)
    monkeypatch.setattr("telegrad.rpc.threads.pool.RECENT_SECONDS", 0.0)
    patient.submit(lambda: linger)
    assert lingers.wait(60)
    with patient._lock:  # both come before the lingering thread looks
        patient._backlog.extend([long, done.set])
    assert begun.wait(60)
    first.set()  # its thread leaves the last one to the thread that has just begun a task
    until(lambda: patient.counts()["idle"] == 1)
    looks = len(later.actions)
    later.run()
    gate.set()
    assert looks == 1 and done.wait(60)


# -- Ctrl-C in the thread that brings a task


@pytest.mark.parametrize("idle", [0, 1])
def test_a_pool_is_whole_after_an_interrupt_anywhere_in_submit(until, idle):
    interrupter, places = OpcodeInterrupter(*INSIDE_LOCKS, "start"), [""]
    while places[-1] is not None:
        pool, ran = ThreadPool(2, "pool"), []
        if idle:
            pool.submit(int)
            until(lambda pool=pool: pool.counts()["idle"])
        places.append(interrupter.run(partial(pool.submit, partial(ran.append, 1))))
        pool.submit(partial(ran.append, 2))
        until(lambda ran=ran: 2 in ran)
        until(lambda pool=pool: not pool.counts()["running"])
        assert pool.close(5) == [], places[-1]
        assert not any(pool.counts().values()), places[-1]
        until(lambda: not [each for each in threading.enumerate() if each.name.startswith("pool-")])
    assert len(places) > 5


class Interruption(Exception):
    """Raised by a signal handler."""


def interrupted_start(monkeypatch):
    """Have the next start of a thread raise what a signal handler raised, when the thread runs."""
    start = threading.Thread.start

    def started(thread):
        monkeypatch.setattr(threading.Thread, "start", start)
        start(thread)
        raise Interruption

    monkeypatch.setattr(threading.Thread, "start", started)


def test_a_thread_whose_start_was_interrupted_counts_itself(pool, until, monkeypatch):
    ran = []
    interrupted_start(monkeypatch)
    with pytest.raises(Interruption):
        pool.submit(partial(ran.append, 1))
    until(lambda: pool.counts()["idle"] == 1)
    pool.submit(partial(ran.append, 2))
    until(lambda: ran == [2] and pool.counts()["idle"] == 1)
    assert pool.busy() == 0


def test_a_thread_whose_start_was_interrupted_runs_the_task_that_waits(pool, until, monkeypatch):
    gate, ran = threading.Event(), []
    pool.submit(partial(gate.wait, 5))
    pool.submit(partial(gate.wait, 5))
    pool.submit(partial(ran.append, 1))
    interrupted_start(monkeypatch)
    with pytest.raises(Interruption):
        pool.block(lambda timeout: True, 1.0)  # gives its place to the task that waits
    until(lambda: ran == [1])
    gate.set()


def test_a_thread_whose_start_was_interrupted_ends_with_the_pool(until, monkeypatch):
    pool = ThreadPool(2, "interrupted")
    interrupted_start(monkeypatch)
    with pool._lock:  # the thread counts itself after that
        with pytest.raises(Interruption):
            pool._start(int)
        pool._closed = True
    until(lambda: not [each for each in threading.enumerate() if each.name.startswith("interrupted")])
    assert pool.close(5) == [] and pool.busy() == 0
