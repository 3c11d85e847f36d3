"""Flow control when calls, sessions and threads end between two steps: no thread waits for room that will not come."""

import threading
from functools import partial

import pytest
from helpers.frames import Frames
from helpers.interrupts import OpcodeInterrupter
from telegrad.core.futures import Future, ProgramClock
from telegrad.rpc.flow.credits import Receipts
from telegrad.rpc.flow.flow import Flow
from telegrad.rpc.wire.control import Amount, decode_amount
from telegrad.rpc.wire.messages import Outgoing, Queued

ROOM = Amount(100, 10)
FIRST, ALL = 100, Amount(100, 1)


class Letter(Outgoing):
    """Message that is over when a test says so."""

    def __init__(self, size=10):
        super().__init__(1, 1, 60.0, 1)
        self.size, self.over = size, False

    def done(self):
        return self.over


def flow_of(session, room=ROOM):
    session.flow = Flow(session, room, ProgramClock(lambda: 0.0), lambda request: None)
    return session.flow


def fail_unsent(message):
    message.over = True


@pytest.fixture
def waiting(until):
    """Function that sends a message in a thread, which waits for room; returns the thread and what ``send`` returned."""
    threads = []

    def begin(flow, message):
        went, queued = [], len(flow.queued)
        threads.append(
            threading.Thread(target=lambda: went.append(flow.send(message, [b"late"], fail_unsent)), daemon=True)
        )
        threads[-1].start()
        until(lambda: len(flow.queued) > queued)
        return threads[-1], went

    yield begin
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_call_that_ends_as_it_gets_room_frees_its_thread_and_its_room(waiting):
    second = Letter()

    def end(message):
        second.over = True
        flow.cancel(second)
        return True

    session = Frames()
    flow = flow_of(session, Amount(1024, 1))
    flow.send(first := Letter(), [b"first"], fail_unsent)
    thread, went = waiting(flow, second)
    session.before = end  # the question comes between the credit and the turn of what has room by it
    flow.credited(Amount(10, 1))
    thread.join(60)
    assert went == [True] and second.over and session.sent == [first]
    assert flow.counts() == {"in_flight": (0, 0), "queued": (0, 0)}


def cut_before_it_opened(waiting):
    """Return a session that ended before it was open, its flow, a message that has room and waits for the next session,
    and one behind it with a thread that waits."""
    session = Frames()
    flow = flow_of(session)
    flow.send(Letter(FIRST), [b"first"], fail_unsent)
    flow.send(copied := Letter(), [b"copied"], fail_unsent, waits=False)
    thread, went = waiting(flow, kept := Letter())
    session.before = lambda message: message is None
    flow.credited(ALL)
    return session, flow, copied, kept, thread, went


def test_a_call_that_ends_between_two_sessions_frees_its_thread_and_its_room(waiting):
    _, flow, copied, kept, thread, went = cut_before_it_opened(waiting)
    kept.over = True
    flow.cancel(kept)
    thread.join(60)
    assert went == [True] and flow.counts()["in_flight"] == (copied.size, 1)


def test_messages_that_wait_for_the_next_session_go_by_it(waiting):
    session, flow, copied, kept, thread, went = cut_before_it_opened(waiting)
    flow.move(fresh := Frames())
    thread.join(60)
    assert went == [True] and {*fresh.sent} == {copied, kept}
    assert fresh.flow is flow and session.sent[1:] == []


def test_closing_frees_what_waits_for_the_next_session(waiting):
    _, flow, copied, _, thread, went = cut_before_it_opened(waiting)
    flow.close()
    thread.join(60)
    assert went == [False] and copied.over


def test_a_message_goes_by_the_session_that_comes_while_it_is_refused():
    fresh = Frames()

    def refuse(message):
        if message is None:
            return True
        flow.move(fresh)  # as another thread does between the two
        return False

    flow = flow_of(session := Frames())
    flow.send(Letter(FIRST), [b"first"], fail_unsent)
    flow.send(copied := Letter(), [b"copied"], fail_unsent, waits=False)
    session.before = refuse
    flow.credited(ALL)
    assert fresh.sent == [copied] and not copied.over


def test_a_call_that_is_cancelled_while_its_session_is_replaced_leaves_the_queue():
    session = Frames()
    flow = flow_of(session)
    flow.send(Letter(FIRST), [b"first"], fail_unsent)
    flow.send(copied := Letter(), [b"copied"], fail_unsent, waits=False)
    holder = copied.session  # as the thread reads it that cancels, before another one moves
    flow.move(Frames())
    assert holder.flow is not None and holder.flow.cancel(copied) and not flow.queued


class Pair(Frames):
    """Connection to a peer that uses messages, and answers questions, when ``settle`` is called."""

    def __init__(self):
        super().__init__()
        self.questions, self._used = [], 0
        self.receipts = Receipts(lambda used: self.flow.credited(used))

    def send(self, parts, handle=None):
        if handle is None:
            self.questions.append(decode_amount(b"".join(parts)))
        return super().send(parts, handle)

    def withdraw(self, handle):
        return False

    def settle(self):
        while self.questions or self._used < len(self.sent):
            while self.questions:
                self.receipts.asked(self.questions.pop())
            if self._used < len(self.sent):
                self.receipts.used(self.sent[self._used].size)
                self._used += 1


def end_in_line(flow, line):
    line[0].over = True
    flow.cancel(line[0])


def end_in_flight(flow, line):
    flow._change(partial(flow._window.forget_question))


def put_back(flow, line):
    flow.credited(Amount(0, 0))


@pytest.mark.parametrize("step", [end_in_line, end_in_flight, put_back])
@pytest.mark.parametrize("room", [Amount(1000, 1), Amount(25, 100)])
def test_an_interrupt_anywhere_in_a_step_keeps_no_message_back(step, room):
    interrupter, places = OpcodeInterrupter(), []
    while not places or places[-1] is not None:
        session = Pair()
        flow = flow_of(session, room)
        line = [Letter() for _ in range(6)]
        for message in line:
            flow.send(message, [b"message"], fail_unsent, waits=False)
        places.append(interrupter.run(partial(step, flow, line[3:])))
        session.settle()
        assert session.sent == [each for each in line if not each.over], places[-1]
        assert not flow.queued, places[-1]
    assert len(places) > 3


@pytest.mark.parametrize("ends", [False, True])
def test_an_interrupt_anywhere_keeps_no_request_and_no_thread_back(ends):
    """Requests that were held because answers are queued, and threads that wait for room."""
    interrupter = OpcodeInterrupter("fail_unsent", "done", "send")  # of this file, which the shield takes for a user's
    places = [""]
    while places[-1] is not None:
        session, resumed = Pair(), []
        flow = session.flow = Flow(session, ROOM, ProgramClock(lambda: 0.0), resumed.append)
        flow.send(Letter(FIRST), [b"first"], fail_unsent)
        waiter, copied = Letter(), Letter()
        queued = waiter.waiting = Queued([b"waits"], fail_unsent, Future())
        assert flow._enqueue(waiter, queued, False) and flow.send(copied, [b"copied"], fail_unsent, waits=False)
        held = [object() for _ in range(3)]
        assert all(map(flow.hold, held))
        places.append(interrupter.run(flow.close if ends else partial(flow.credited, ALL)))
        if not ends:
            session.settle()
        elif not flow.closed:
            flow.close()  # it had not begun
        assert {*resumed} == {*held}, places[-1]
        assert queued.gate.done() and queued.gate.value() is not ends, places[-1]
        assert session.sent[1:] == ([] if ends else [copied]) and copied.over is ends, places[-1]
    assert len(places) > 10
