"""Calls of agents whose waiting threads read the stream themselves: each gets its own answer, however it waits."""

import contextvars
import signal
import threading
import time

import pytest
from helpers.interrupts import first_signal, interrupt
from telegrad import rpc
from telegrad.base.errors import RpcTimeoutError
from telegrad.testing.cluster import in_process_cluster

asked = threading.Event()  # workers of these tests are in this process


def sleep(seconds):
    time.sleep(seconds)
    return "late"


def answer_later():
    asked.wait(60)
    return "late"


@pytest.mark.slow
def test_a_late_answer_is_not_taken_for_another_calls(workers, until, thread):
    asked.clear()
    a, *_ = workers
    if a.sessions.lanes.keys() != {"grpc"}:
        return
    with pytest.raises(RpcTimeoutError):
        rpc.rpc_sync("b", sleep, (0.3,), timeout=0.05)
    for number in range(20):
        assert rpc.rpc_sync("b", abs, (-number,)) == number
    future = rpc.rpc_async("b", answer_later)
    with first_signal(signal.SIGINT, interrupt) as send:
        interrupting = thread(lambda: until(lambda: future._waiters) and send())
        with pytest.raises(KeyboardInterrupt):
            future.wait()
        interrupting.join()
    for number in range(20):
        assert rpc.rpc_sync("b", abs, (-number,)) == number
    asked.set()
    assert future.wait() == "late"


def call_back(depth):
    return depth if depth == 0 else rpc.rpc_sync(["a", "b", "c"][depth % 3], call_back, (depth - 1,))


@pytest.mark.slow
def test_calls_that_nest_deeply_and_from_many_threads_all_end(workers, thread):
    results = []

    def call():
        results.append(rpc.rpc_sync("b", call_back, (12,)))

    threads = [thread(contextvars.copy_context().run, call) for _ in range(8)]
    for each in threads:
        each.join(30)
    assert results == [0] * 8


def test_the_in_process_lane_has_no_reading_to_do():
    with in_process_cluster("a", "b") as (a, _), a.use():
        future = rpc.rpc_async("b", abs, (-1,))
        assert future.driver is None and future.wait() == 1


@pytest.mark.slow
def test_very_many_calls_at_once_are_all_answered_and_none_waits_for_the_others(workers):
    futures = [rpc.rpc_async("b", abs, (-number,)) for number in range(3000)]
    assert [future.wait() for future in futures] == list(range(3000))


@pytest.mark.slow
def test_calls_that_nobody_waits_for_are_sent_and_answered(workers, until):
    """Frames that wait for others are written soon, although their thread does nothing more."""
    futures = [rpc.rpc_async("b", abs, (-number,)) for number in range(500)]
    until(lambda: all(future.done() for future in futures))
