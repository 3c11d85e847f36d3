"""The table of calls under way: each leaves once, answered or expired, also if several threads come at once."""

import random
import threading

import pytest
from telegrad.rpc.calls.dispatch import CallTable
from telegrad.rpc.threads.timers import Timers

from .test_timers import ManualLoop


class Table(CallTable):
    """A table with a clock that the test moves, and the calls that expired."""

    def __init__(self):
        self.loop = ManualLoop()
        timers = Timers(lambda: self.loop.time)
        timers.start(self.loop)
        self.expired = []
        super().__init__(timers, self.expired.append)

    def call(self, seconds):
        made = self.new_call(1, seconds, 0, "a call")
        self.add(made)
        return made


@pytest.fixture
def table():
    return Table()


def test_a_seeded_program_draws_the_same_numbers_and_has_other_ids():
    random.seed(1)
    before, first = random.getstate(), Table().call(1).call_id
    assert random.getstate() == before
    assert Table().call(1).call_id != first


def test_calls_expire_in_the_order_of_their_deadlines(table):
    late, early, never = table.call(5), table.call(1), table.call(0)
    table.loop.advance(0.5)
    assert table.expired == []
    table.loop.advance(1)
    assert table.expired == [early]
    table.loop.advance(100)
    assert table.expired == [early, late]
    assert table.take(never.call_id) is never
    assert len(table) == 0


def test_an_expiry_that_fails_keeps_no_other_call_from_its_own(table, caplog):
    first, second = table.call(1), table.call(1)

    def expired(call):
        table.expired.append(call)
        if call is first:
            raise RuntimeError("the first")

    table._expired = expired
    table.loop.advance(2)
    assert table.expired == [first, second] and len(table) == 0 and "the first" in caplog.text


def test_a_call_is_taken_once(table):
    made = table.call(1)
    assert table.take(made.call_id) is made
    assert table.take(made.call_id) is None
    table.loop.advance(9)
    assert table.expired == []


def test_deadlines_stay_in_order_when_calls_of_a_time_out_come_and_go(table):
    for _ in range(3):
        table.take(table.call(1).call_id)
        table.loop.advance(0.4)
        kept = table.call(1)
        table.loop.advance(0.8)
        assert table.expired == []
        table.loop.advance(0.2)
        assert table.expired == [kept]
        table.expired.clear()


def test_time_outs_that_never_come_again_leave_nothing(table):
    for number in range(1, 1000):
        table.take(table.call(1 + number / 7).call_id)
    assert sum(timer.pending for _, _, timer in table._deadlines._timers._heap) < 20


def test_calls_are_found_by_a_condition(table):
    calls = [table.call(1) for _ in range(4)]
    table.take(calls[0].call_id)
    assert table.find(lambda call: call is not calls[2]) == [calls[1], calls[3]] and len(table) == 3


def test_threads_that_take_the_same_calls_share_them():
    table, taken = Table(), []
    calls = [table.call(60) for _ in range(5000)]

    def work(order):
        taken.append([call for call in order if table.take(call.call_id)])

    threads = [threading.Thread(target=work, args=(calls[:: 1 - 2 * (number % 2)],)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, taken)) == 5000 and len({id(call) for part in taken for call in part}) == 5000
    assert len(table) == 0


def test_a_call_whose_addition_was_interrupted_can_be_taken(table):
    whole = table.call(5)
    interrupted = table.new_call(1, 5, 0, "a call")
    table.calls[interrupted.call_id] = interrupted  # as far as ``add`` had come
    assert table.take(interrupted.call_id) is interrupted and table.take(whole.call_id) is whole
    assert len(table) == 0


def test_a_shorter_time_out_comes_before_a_longer_one_that_was_set(table):
    long = table.call(60)
    table.loop.advance(1)
    short, none = table.call(2), table.call(0)
    table.loop.advance(2)
    assert table.expired == [short]
    table.expire_in(none, 3)
    table.expire_in(none, 1)  # which changes nothing
    table.loop.advance(2)
    assert table.expired == [short]
    table.loop.advance(1)
    assert table.expired == [short, none]
    table.loop.advance(54)
    assert table.expired == [short, none, long] and len(table) == 0


def test_many_deadlines_that_pass_one_after_another_are_looked_at_together(table):
    table._listed = Counted(table._listed)
    calls = [table.call(10) for _ in range(1000) if table.loop.advance(1e-6) is None]
    table.loop.advance(10)
    for _ in range(100):
        table.loop.advance(1e-3)
    assert table.expired == calls
    assert table._listed.count < 100


def test_requests_are_counted_and_waits_are_not(table):
    assert table.sent == 0
    table.call(1), table.call(1), table.add(table.new_call(0, 1, -1, "a wait"))
    assert table.sent == 2


class Counted:
    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self):
        self.count += 1
        return self.function()
