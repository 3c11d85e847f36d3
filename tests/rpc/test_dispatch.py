"""The table of calls under way: deadlines in order, nothing kept, whoever comes at once."""

import threading

from telegrad.rpc.dispatch import CallTable, PendingCall


def call(table, seconds, now=0.0):
    made = PendingCall(table.new_id(), 0, seconds, now + seconds, "a call")
    table.add(made)
    return made


def test_calls_expire_in_the_order_of_their_deadlines():
    table = CallTable()
    late, early, never = call(table, 5), call(table, 1), call(table, 0)
    assert table.next_deadline() == 1
    assert list(table.expired(0.5)) == []
    assert list(table.expired(1.5)) == [early]
    assert table.next_deadline() == 5
    assert list(table.expired(100)) == [late]
    assert table.next_deadline() is None
    assert table.take(never.id) is never
    assert len(table) == 0


def test_a_call_is_taken_once():
    table = CallTable()
    made = call(table, 1)
    assert table.take(made.id) is made
    assert table.take(made.id) is None
    assert list(table.expired(9)) == []


def test_time_outs_that_never_come_again_leave_nothing():
    table = CallTable()
    for number in range(1, 1000):
        table.take(call(table, 1 + number / 7).id)
    assert list(table.expired(0)) == []
    assert table._queues == {}


def test_no_deadline_is_lost_while_empty_queues_are_tidied_away():
    table, stop = CallTable(), threading.Event()

    def tidy():
        while not stop.is_set():
            list(table.expired(0))

    tidier = threading.Thread(target=tidy)
    tidier.start()
    try:
        for number in range(3000):
            kept = call(table, 1.0)
            if number % 2:
                table.take(kept.id)
    finally:
        stop.set()
        tidier.join()
    assert len(list(table.expired(5))) == len([1 for number in range(3000) if not number % 2])
    assert len(table) == 0
