"""The table of calls under way: each leaves once, answered or expired, whoever comes at once."""

import threading

import pytest
from telegrad.rpc.dispatch import CallTable, PendingCall
from telegrad.rpc.timers import Timers

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
        made = PendingCall(self.new_id(), 0, seconds, self.loop.time + seconds, "a call")
        self.add(made)
        return made


@pytest.fixture
def table():
    return Table()


def test_calls_expire_in_the_order_of_their_deadlines(table):
    late, early, never = table.call(5), table.call(1), table.call(0)
    table.loop.advance(0.5)
    assert table.expired == []
    table.loop.advance(1)
    assert table.expired == [early]
    table.loop.advance(100)
    assert table.expired == [early, late]
    assert table.take(never.id) is never
    assert len(table) == 0


def test_a_call_is_taken_once(table):
    made = table.call(1)
    assert table.take(made.id) is made
    assert table.take(made.id) is None
    table.loop.advance(9)
    assert table.expired == []


def test_calls_to_a_worker_are_taken_together(table):
    calls = [table.call(1) for _ in range(4)]
    assert list(table.take_if(lambda call: call is not calls[2])) == [calls[0], calls[1], calls[3]]
    assert len(table) == 1


def test_threads_that_take_the_same_calls_share_them():
    table, taken = Table(), []
    calls = [table.call(60) for _ in range(5000)]

    def work(order):
        taken.append([call for call in order if table.take(call.id)])

    threads = [threading.Thread(target=work, args=(calls[:: 1 - 2 * (number % 2)],)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, taken)) == 5000 and len({id(call) for part in taken for call in part}) == 5000
    assert len(table) == 0
