"""A call's states: the table in the code is the one on the page, every order of events ends, and a call is a small record."""

from itertools import product
from pathlib import Path

import pytest
from telegrad import rpc
from telegrad.base.errors import RpcError
from telegrad.rpc import call_states
from telegrad.rpc.call_states import ANSWERED, CALLING, ENDED, NEW, SERVING, WAITING, ServingState
from telegrad.rpc.calls.dispatch import PendingCall
from telegrad.rpc.calls.server_call import ServerCall
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.lanes.frame import FrameHandle
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing import in_process_cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "design" / "rpc_states.md"
STEPS = ["queue", "admit", "write", "refuse", "withdraw", "answer", "fail"]
EVENTS = ["start", "stream", "park", "answer", "drop", "end"]


def states_of(table):
    """Return the states in the order in which the table has them."""
    return list(dict.fromkeys([state for state, _ in table] + list(table.values())))


def rows(table, events):
    yield f"| state | {' | '.join(events)} |"
    yield f"|{'|'.join(['---'] * (1 + len(events)))}|"
    for state in states_of(table):
        cells = [f" {table[state, event].name} " if (state, event) in table else " " for event in events]
        yield f"| {state.name} |{'|'.join(cells)}|"


def arrows(table):
    """Return the lines of a picture, without events that change nothing."""
    found = {}
    for (state, event), then in table.items():
        if state is not then:
            found.setdefault((state, then), []).append(event)
    return [f"    {one.name} --> {other.name}: {', '.join(events)}" for (one, other), events in found.items()]


@pytest.mark.parametrize(("table", "events"), [(CALLING, STEPS), (SERVING, EVENTS)], ids=["caller", "callee"])
def test_the_page_has_the_table_and_the_picture_of_the_code(table, events):
    for lines in (list(rows(table, events)), arrows(table)):
        assert "\n".join(lines) in PAGE.read_text(), "rpc_states.md must have:\n" + "\n".join(lines)


def test_a_state_has_the_states_that_follow_it_and_no_others():
    for state, event in product(states_of(SERVING), EVENTS):
        assert getattr(state, event, None) is SERVING.get((state, event))


class Watched:
    """The field ``state`` of messages, which notes each change."""

    def __init__(self, slot):
        self.slot, self.changes = slot, set()

    def __get__(self, message, kind=None):
        return self if message is None else self.slot.__get__(message, kind)

    def __set__(self, message, state):
        try:
            self.changes.add((self.slot.__get__(message), state))
        except AttributeError:
            assert state is NEW  # it is being made
        self.slot.__set__(message, state)


def later(value):
    return value


@pytest.mark.parametrize("lane", ["inproc", "unix"])
def test_every_change_of_a_messages_state_is_in_the_table(lane, monkeypatch):
    """With room for two messages: calls wait in the queue, some with a thread, are cancelled, and lose their session."""
    watched = Watched(FrameHandle.__dict__["state"])
    monkeypatch.setattr(FrameHandle, "state", watched)
    made = {} if lane == "inproc" else {"make_lane": lambda: GrpcLane(("unix",))}
    options = GrpcRpcBackendOptions(rpc_timeout=60, window_messages=2)
    with in_process_cluster("a", "b", options=options, **made) as (a, _), a.use():
        assert [call.wait() for call in [rpc.rpc_async("b", later, (number,)) for number in range(20)]] == [*range(20)]
        calls = [rpc.rpc_async("b", later, ("x" * 300_000,)) for _ in range(8)]
        for call in calls[::2]:
            call.cancel()
        for call in calls[1::2]:
            assert len(call.wait()) == 300_000
        calls = [rpc.rpc_async("b", later, (number,)) for number in range(8)]
        a.peers.at(1).link.dialed.close()
        for call in calls:
            try:
                call.wait()
            except RpcError:
                pass
        assert rpc.rpc_sync("b", later, (1,)) == 1
    allowed = {(state, then) for (state, _), then in CALLING.items()}
    assert {(one, other) for one, other in watched.changes if one is not other} <= allowed


def test_a_message_that_has_begun_can_end_in_every_state_and_never_begins_again_after():
    for state in states_of(CALLING):
        follow = {then for (one, _), then in CALLING.items() if one is state}
        seen, left = {state}, [state]
        while left:
            one = left.pop()
            new = {then for (each, _), then in CALLING.items() if each is one} - seen
            seen |= new
            left += new
        assert seen & {call_states.ANSWERED_CALL, call_states.FAILED, call_states.WITHDRAWN}
        if state in (call_states.ANSWERED_CALL, call_states.FAILED, call_states.WITHDRAWN):
            assert not follow


def test_a_request_ends_once_in_every_order_of_events_and_stays_so():
    assert set(states_of(SERVING)) == {each for each in vars(call_states).values() if isinstance(each, ServingState)}
    reached, left = {WAITING}, [WAITING]
    while left:
        state = left.pop()
        follow = {then for (one, _), then in SERVING.items() if one is state}
        assert WAITING not in follow, "a request that was taken does not wait again"
        left += follow - reached
        reached |= follow
        # An answer ends it, or leaves a stream, which ends with its generator.
        assert state.answer is ENDED or (state.answer is ANSWERED and state.answer.end is ENDED)
        assert state.drop in (ENDED, ANSWERED)
    assert reached == set(states_of(SERVING))
    assert {then for (state, _), then in SERVING.items() if state is ENDED} == {ENDED}


def slots(kind):
    return [name for each in kind.__mro__ for name in getattr(each, "__slots__", ())]


def test_a_call_has_few_fields():
    assert len(slots(PendingCall)) <= 14 and PendingCall.__dictoffset__ == 0
    assert len(slots(ServerCall)) <= 18 and ServerCall.__dictoffset__ == 0
