"""Cancels that come between two steps of what they cancel, as from another thread."""

from collections import OrderedDict
from functools import partial

import pytest
from helpers.frames import Frames
from helpers.interrupts import INSIDE_LOCKS, Interrupter, OpcodeInterrupter
from telegrad import rpc
from telegrad.base.errors import RpcCancelledError, RpcError
from telegrad.core.futures import thread_role
from telegrad.rpc.calls.server_call import ServerCall
from telegrad.rpc.lanes.reading import READER
from telegrad.rpc.wire.control import ControlMessage, encode_control
from telegrad.rpc.wire.header import Flag
from telegrad.rpc.wire.messages import NO_ATTACHMENTS

TOPIC = 200
ran: list[object] = []


def note(value):
    ran.append(value)
    return value


class Intruded(dict):
    """Dictionary that calls ``intrude`` once, after the first entry was made."""

    def __init__(self, intrude):
        super().__init__()
        self._intrude = intrude

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self._once(key)

    def setdefault(self, key, value):
        found = super().setdefault(key, value)
        self._once(key)
        return found

    def _once(self, key):
        intrude, self._intrude = self._intrude, lambda key: None
        intrude(key)


@pytest.mark.parametrize("table", ["waiting", "serving"])
def test_a_cancel_while_its_call_is_accepted_leaves_nothing(workers, monkeypatch, table, until):
    b = workers[1]
    ran.clear()
    rpc.rpc_sync("b", note, ("before",))
    server = b.server
    monkeypatch.setattr(server, table, Intruded(lambda key: server.cancel(b.peers.find("a"), key[1])))
    future = rpc.rpc_async("b", note, ("cancelled",))
    until(lambda: server._cancelled and not server.waiting and not server.serving)
    future.cancel()
    with pytest.raises(RpcCancelledError):
        future.wait()
    assert rpc.rpc_sync("b", note, ("after",)) == "after" and ran == ["before", "after"]


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("keep", [0, Flag.KEEP])
def test_a_request_whose_reader_is_interrupted_starts_or_is_dropped(workers, keep, quick, until):
    """Also one that must run, and one that its reader serves."""
    server, interrupter, begun = workers[1].server, OpcodeInterrupter("answer_at_once"), []

    def answer_at_once(call):
        call.reply(begun.append(call.call_id))

    server.serve(200, answer_at_once, quick=quick)
    peer, session = workers[1].peers.find("a"), Frames()
    session.flow = workers[1].sessions.new_flow(session)
    places = [""]
    while places[-1] is not None:
        call = ServerCall()
        call.session, call.attached, call.extras = session, NO_ATTACHMENTS, {}
        call.flags, call.method, call.call_id, call.timeout, call.size = keep, 200, len(places), 0.0, 10
        places.append(interrupter.run(partial(server.accept, call, peer)))
        until(lambda: not server.waiting and not server.serving)
    assert len(places) > 10 and len(begun) > len(places) // 2 and len(begun) == len({*begun})


def test_a_control_message_whose_reader_is_interrupted_is_handled_once(workers, until):
    a, handled, interrupter, places = workers[0], [], OpcodeInterrupter(*INSIDE_LOCKS), [""]
    a.control.on(TOPIC, lambda peer, payload: handled.append(payload))
    peer = a.peers.find("b")

    def read(frame):
        role, thread_role.blocker = thread_role.blocker, READER
        try:
            a.control.received(peer, frame)
        finally:
            thread_role.blocker = role

    while places[-1] is not None:
        payload = str(len(places)).encode()
        frame = b"".join(encode_control([ControlMessage(10**6 + len(places), payload, TOPIC)]))
        before = peer.control.received
        places.append(interrupter.run(partial(read, frame)))
        read(frame)  # what was not acknowledged is sent again
        until(lambda payload=payload: payload in handled)
        read(frame)
        until(lambda: a.timers._soon._actions.empty())
        assert handled.count(payload) == 1 and peer.control.received == before + 1, places[-1]
    assert len(places) > 5


def test_a_call_to_itself_that_is_interrupted_anywhere_leaves_nothing(workers, until):
    """The caller's thread is the reader, too."""
    a, interrupter, places = workers[0], OpcodeInterrupter(*INSIDE_LOCKS, "start"), [""]
    rpc.rpc_sync("a", note, (0,))
    while places[-1] is not None:
        try:
            places.append(interrupter.run(partial(rpc.rpc_sync, "a", note, (1,))))
        except RpcError:
            continue  # its session was given up a moment ago
        until(partial(answered, "a"))
        until(lambda: not (a.server.waiting or a.server.serving or a.caller.table.calls), 120)
        until(lambda: not a.threads.functions.busy())
    assert len(places) > 50


def answered(to):
    try:
        return rpc.rpc_sync(to, note, (2,)) == 2
    except RpcError:
        return False


class Emptied(OrderedDict):
    """Dictionary that another thread changes whenever this one looks at the beginning."""

    def __iter__(self):
        entries = super().__iter__()
        self[len(self), "of another thread"] = None
        return entries


def test_cancels_that_come_by_two_sessions_forget_the_oldest_together(workers, monkeypatch):
    b = workers[1]
    peer = b.peers.find("a")
    monkeypatch.setattr(b.server, "_cancelled", Emptied())
    for number in range(5000):
        b.server.cancel(peer, 2**60 + number)
    assert len(b.server._cancelled) <= 4097


@pytest.mark.parametrize("end", ["complete_with_none", "cancel", "give_up"])
def test_callbacks_run_once_though_the_thread_is_interrupted_that_ends_their_call(workers, end, until):
    """By Ctrl-C, say, while it reads what others wait for."""
    caller, interrupter, places = workers[0].caller, Interrupter(), [""]

    def ending(call):
        argument = {
            "complete_with_none": ((call.call_id,),),
            "cancel": (call.future,),
            "give_up": (call, RpcError("enough")),
        }
        return partial(getattr(caller, end), *argument[end])

    while places[-1] is not None:
        call, ran = caller.table.new_call(1, 0, 1, "a call"), []
        caller.table.add(call)
        call.future.add_done_callback(ran.append)
        places.append(interrupter.run(ending(call)))
        if call.call_id in caller.table.calls:
            ending(call)()
        until(lambda ran=ran: ran)
        until(lambda: not workers[0].threads.callbacks())
        assert ran == [call.future], places[-1]
    assert len(places) > 5
