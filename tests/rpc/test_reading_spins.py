"""A thread that reads spins before it sleeps, as long as that pays."""

import threading
import time

from telegrad.rpc.lanes import reading, spinning
from telegrad.rpc.lanes.spinning import CONFIDENCE, DISTRUST, MOST_DISTRUST


def test_spinning_ends_when_it_does_not_pay_and_begins_again_when_it_would(line, monkeypatch):
    monkeypatch.setattr(spinning, "LONG_SECONDS", 60.0)
    for _ in range(CONFIDENCE):
        line.reading.linger(lambda: False)
    yields = []
    monkeypatch.setattr(reading, "sched_yield", lambda: yields.append(1))
    monkeypatch.setattr(reading, "REQUEST_SPIN_SECONDS", 60.0)
    line.reading.linger(lambda: False)
    assert not yields, "it still spins"
    monkeypatch.setattr(reading, "SOON_SECONDS", 60.0)
    line.send(0)
    line.reading.by_loop()
    line.reading.linger(lambda: bool(yields))


def test_spinning_ends_at_once_when_others_need_the_core(line, monkeypatch):
    yields = []
    monkeypatch.setattr(reading, "sched_yield", lambda: yields.append(time.sleep(2 * spinning.LONG_SECONDS)))
    for _ in range(5):
        line.reading.linger(lambda: False)
    assert len(yields) == 1


def test_one_long_yield_ends_spinning_for_a_moment_and_several_for_long(line, monkeypatch):
    spins = []
    monkeypatch.setattr(reading, "sched_yield", lambda: spins.append(time.sleep(2 * spinning.LONG_SECONDS)))

    def sleeps_until_it_spins():
        before, sleeps = len(spins), 0
        while len(spins) == before:
            line.reading.spinning.confidence += 1  # as a short sleep does
            line.reading.linger(lambda: False)
            sleeps += 1
        return sleeps

    line.reading.linger(lambda: False)
    waits = [sleeps_until_it_spins() for _ in range(4)]
    assert waits == [DISTRUST + 1, 4 * DISTRUST + 1, 16 * DISTRUST + 1, MOST_DISTRUST + 1]


def test_what_a_thread_does_with_a_frame_is_no_long_yield(line, monkeypatch):
    monkeypatch.setattr(spinning, "LONG_SECONDS", 0.0)  # every yield would be
    monkeypatch.setattr(reading, "SPIN_SECONDS", 0.0)
    monkeypatch.setattr(reading, "sched_yield", int)
    line.send(1)
    thread = threading.Timer(0.05, line.send, [0])
    thread.start()
    assert line.futures[0].wait() == 0  # it read the other frame, then nothing, and slept
    thread.join()
    assert line.reading.spinning.confidence == CONFIDENCE - 1
