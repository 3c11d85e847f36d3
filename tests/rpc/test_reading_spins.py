"""A thread that reads spins before it sleeps, for as long as its policy says (``test_spin_policy.py``)."""

import threading
import time

import pytest
from telegrad.rpc.lanes import reading, spinning
from telegrad.rpc.lanes.spinning import CONFIDENCE


@pytest.fixture
def yields(monkeypatch):
    """Return the times that the yields of readers take; each takes as long as the last item says."""
    seconds = [0.0]
    monkeypatch.setattr(reading, "sched_yield", lambda: seconds.append(seconds[-1]) or time.sleep(seconds[-1]))
    monkeypatch.setattr(spinning, "DOZE_SECONDS", 0.001)
    return seconds


def test_a_thread_spins_and_then_does_not_when_that_was_useless(line, yields):
    for _ in range(CONFIDENCE):
        line.reading.policy.confidence = 1
        line.reading.linger(lambda: False)
    before = len(yields)
    line.reading.linger(lambda: False)
    assert before > CONFIDENCE and len(yields) == before


def test_a_yield_that_takes_long_ends_the_spinning_at_once(line, yields):
    yields[0] = 2 * spinning.LONG_SECONDS
    for _ in range(5):
        line.reading.linger(lambda: False)
    assert len(yields) == 2


def test_what_a_thread_does_with_a_frame_is_no_long_yield(line, monkeypatch):
    monkeypatch.setattr(spinning, "LONG_SECONDS", 0.0)  # every yield would be
    monkeypatch.setattr(spinning, "SPIN_SECONDS", 1e-9)
    monkeypatch.setattr(reading, "sched_yield", int)
    line.send(1)
    thread = threading.Timer(0.05, line.send, [0])
    thread.start()
    assert line.futures[0].wait() == 0  # it read the other frame, then nothing, and slept
    thread.join()
    assert line.reading.policy.confidence == CONFIDENCE - 1


def test_the_loop_tells_the_policy_when_it_reads(line, monkeypatch):
    monkeypatch.setattr(spinning, "SOON_SECONDS", 60.0)
    line.reading.policy.confidence = 0
    line.reading.policy.nothing_came(time.monotonic(), 0.0)
    line.send(0)
    line.reading.by_loop()
    line.reading.policy.begin(time.monotonic(), False)
    assert line.reading.policy.confidence == 1
