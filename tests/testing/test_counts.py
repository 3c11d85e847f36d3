"""Counts of calls, switches and memory equal the costs that a step is known to have."""

import os
import threading

import pytest
from telegrad.testing import count, count_system_calls


def two_calls():
    return abs(one())


def one():
    return -1


def test_calls_are_counted_by_name():
    counts = count(two_calls, repeats=10)
    assert counts.python_calls == {"test_counts.two_calls": 1, "test_counts.one": 1}
    assert counts.c_calls["abs"] == 1


def test_rare_calls_do_not_count():
    turns = []

    def step():
        turns.append(None)
        if len(turns) % 10 == 0:
            one()

    assert "test_counts.one" not in count(step, repeats=20).python_calls


def test_a_hand_over_to_another_thread_is_two_switches_or_more():
    asked, answered = threading.Semaphore(0), threading.Semaphore(0)
    stop = threading.Event()

    def answer():
        while True:
            asked.acquire()
            if stop.is_set():
                return
            answered.release()

    def step():
        asked.release()
        answered.acquire()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        assert count(step).switches >= 1
        assert count(one).switches < 1
    finally:
        stop.set()
        asked.release()
        thread.join()


def test_memory_that_stays_and_memory_at_the_peak():
    kept = []
    counts = count(lambda: kept.append([object()]), repeats=100)
    assert 1 < counts.blocks < 4
    assert count(lambda: len(bytearray(1 << 20))).peak_bytes >= 1 << 20


@pytest.mark.processes
def test_system_calls_are_those_of_the_step():
    counts = count_system_calls(os.getppid, repeats=20)
    if counts is None:
        pytest.skip("strace is not here, or may not trace")
    assert counts == {"getppid": 1}
