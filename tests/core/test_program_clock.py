"""``ProgramClock``: it stands still while it is stopped, and tells when to look again."""

import threading

import pytest
from telegrad.core.futures import Future, ProgramClock, program_clock


class Time:
    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


def test_it_is_the_given_clock_until_it_is_stopped():
    time = Time()
    assert ProgramClock(time).now is time


def test_it_stands_still_while_stopped_and_goes_on_from_there():
    time = Time()
    clock = ProgramClock(time)
    clock.stop()
    time.seconds = 160.0
    assert clock.now() == 100.0
    clock.go()
    time.seconds = 163.0
    assert clock.now() == 103.0
    assert clock.real(105.0) == 165.0


def test_each_stop_needs_its_own_go():
    time = Time()
    clock = ProgramClock(time)
    clock.stop()
    clock.stop()
    clock.go()
    time.seconds = 110.0
    assert clock.now() == 100.0
    clock.go()
    assert clock.now() == 100.0
    time.seconds = 111.0
    assert clock.now() == 101.0


def test_stops_add_up():
    time = Time()
    clock = ProgramClock(time)
    for _ in range(3):
        clock.stop()
        time.seconds += 10.0
        clock.go()
        time.seconds += 1.0
    assert clock.now() == 103.0


def test_real_time_while_it_stands_is_later_than_now():
    time = Time()
    clock = ProgramClock(time)
    clock.stop()
    time.seconds = 500.0
    assert clock.real(90.0) > 500.0 and clock.real(103.0) >= 503.0


def test_a_wait_does_not_time_out_while_the_clock_is_stopped():
    future = Future()
    outcome, began = [], threading.Event()

    def wait():
        began.set()
        outcome.append(future.wait(0.05))

    program_clock.stop()
    try:
        waiter = threading.Thread(target=wait)
        waiter.start()
        began.wait(20)
        waiter.join(0.2)  # four times the time-out
        assert waiter.is_alive()
        future.set_result(7)
        waiter.join(20)
    finally:
        program_clock.go()
    assert outcome == [7]


def test_a_wait_times_out_after_the_clock_goes_on():
    program_clock.stop()
    program_clock.go()
    with pytest.raises(TimeoutError):
        Future().wait(0.01)
