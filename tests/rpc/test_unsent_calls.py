"""Calls that wait on a session which ends before it was open: none was sent, so all go by the next one, once."""

import asyncio
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcTimeoutError, WorkerLostError
from telegrad.rpc.extend import GrpcRpcBackendOptions, InProcessLane, InProcessNetwork
from telegrad.rpc.lanes import grpc_dialing
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing import in_process_cluster

SILENT = ConnectionResetError("no answer yet")
SECONDS = 60
ran: list[object] = []


@pytest.fixture(autouse=True)
def nothing_ran():
    ran.clear()


def note(value):
    ran.append(value if isinstance(value, (int, str)) else len(value))
    return value


dials: list[tuple[object, object]] = []


class LateLane(InProcessLane):
    """Lane whose sessions to others open, or fail, when a test says so."""

    def dial(self, listener, peer, address):
        session = super().dial(listener, peer, address)
        connect = session.connect
        session.connect = lambda: dials.append((session, connect))
        return session


@pytest.fixture
def late(until):
    """Two workers with room for two calls, and functions that let the last dial fail, or succeed."""

    def last():
        until(lambda: dials)
        return dials.pop()

    network, options = InProcessNetwork(), GrpcRpcBackendOptions(rpc_timeout=SECONDS, window_messages=2)
    with in_process_cluster("a", "b", options=options, make_lane=lambda: LateLane(network)) as (a, _), a.use():
        yield a, lambda: last()[0].fail(SILENT), lambda: last()[1]()
    dials.clear()


@pytest.mark.parametrize("failures", [1, 3])
async def test_calls_go_by_the_session_that_opens(late, failures):
    _, fail, succeed = late
    calls = [rpc.rpc_async("b", note, (number,)) for number in range(5)]  # more than there is room for
    for _ in range(failures):
        fail()
    calls.append(rpc.rpc_async("b", note, (5,)))
    succeed()
    assert [await call for call in calls] == list(range(6)) and sorted(ran) == list(range(6))
    assert [await rpc.rpc_async("b", note, (number,)) for number in range(6)] == list(range(6))  # there is room again


def test_a_thread_that_waits_for_room_waits_for_that_of_the_next_session(late):
    _, fail, succeed = late
    calls = [rpc.rpc_async("b", note, (number,)) for number in range(2)]
    answers = []
    agent = late[0]

    def call():
        with agent.use():
            answers.append(rpc.rpc_sync("b", note, (2,)))

    waiting = threading.Thread(target=call)
    waiting.start()
    fail()
    succeed()
    waiting.join(SECONDS)
    assert [call.wait() for call in calls] == [0, 1] and answers == [2] and sorted(ran) == [0, 1, 2]


def test_a_session_that_was_open_loses_what_it_carried(late, until):
    """Its calls may have run."""
    a, _, succeed = late
    first = rpc.rpc_async("b", note, (1,))
    succeed()
    assert first.wait() == 1
    peer = a.peers.at(1)
    peer.link.dialed.fail(SILENT)
    assert peer.link.kept is None


@pytest.mark.parametrize("end", ["lost", "closed"])
async def test_a_session_that_never_opened_keeps_no_call(late, end):
    """The worker is lost, or this one closes, while the calls wait for the next session."""
    a, fail, _ = late
    calls = [rpc.rpc_async("b", note, (number,)) for number in range(5)]  # more than there is room for
    flow = a.peers.at(1).link.dialed.flow
    a.sessions.on_ended.append(
        lambda peer: a.losses.left(peer, "it ended", False, b"") if end == "lost" else a.close("it ends")
    )
    fail()
    for call in calls:
        with pytest.raises(WorkerLostError if end == "lost" else AgentClosedError, match="'b'"):
            await call
    assert flow.closed and not flow.queued and not flow._due._items
    assert a.peers.at(1).link.kept is None


@contextmanager
def slow_to_connect(monkeypatch, failures):
    """Sessions by gRPC fail so often, and then wait for the event."""
    connect, attempts, gate = grpc_dialing.connect, [], threading.Event()

    async def late(*args):
        attempts.append(args)
        if len(attempts) <= failures:
            raise SILENT
        while not gate.is_set():
            await asyncio.sleep(0.001)
        await connect(*args)

    monkeypatch.setattr(grpc_dialing, "connect", late)
    try:
        yield gate, attempts
    finally:
        gate.set()


def by_grpc(*sockets):
    options = GrpcRpcBackendOptions(rpc_timeout=SECONDS)
    return in_process_cluster("a", "b", options=options, make_lane=lambda: GrpcLane(sockets))


@pytest.mark.parametrize("sockets", [["unix"], []], ids=["socket", "grpc"])
def test_frames_of_every_size_go_by_the_next_session(sockets, monkeypatch):
    with by_grpc(*sockets) as (a, _), a.use(), slow_to_connect(monkeypatch, 2) as (gate, attempts):
        gate.set()
        values = [1, "x" * 1000, b"x" * 300_000, tg.tensor(np.arange(3_000_000.0))]
        calls = [rpc.rpc_async("b", note, (value,)) for value in values]
        answers = [call.wait() for call in calls]
        assert answers[:3] == values[:3] and answers[3].equal(values[3])
        assert len(attempts) == 3 and len(ran) == len(values)


@pytest.mark.parametrize("size", [10, 300_000])
def test_a_call_that_was_given_up_meanwhile_never_runs(size, monkeypatch, until):
    with by_grpc("unix") as (a, _), a.use(), slow_to_connect(monkeypatch, 1) as (gate, attempts):
        calls = [rpc.rpc_async("b", note, ("x" * size,)) for _ in range(3)]
        hurried = rpc.rpc_async("b", note, ("late" * size,), timeout=0.2)
        until(lambda: len(attempts) == 2)
        assert calls[1].cancel()
        with pytest.raises(RpcTimeoutError, match="no connection was open"):
            hurried.wait()
        gate.set()
        assert calls[0].wait() == calls[2].wait() == "x" * size
        assert ran == ["x" * size] * 2


@pytest.mark.parametrize("size", [10, 300_000])
def test_frames_of_a_session_that_is_closed_before_it_opens_go_by_the_next_one_only(size, monkeypatch, until):
    """A thread that was interrupted closes it, and it may still open: what it then sends would not be counted there."""
    with by_grpc("unix") as (a, b), a.use(), slow_to_connect(monkeypatch, 0) as (gate, attempts):
        calls = [rpc.rpc_async("b", note, ("x" * size,))]
        until(lambda: attempts)
        a.peers.find("b").link.dialed.close()
        calls.append(rpc.rpc_async("b", note, ("x" * size,)))
        until(lambda: len(attempts) == 2)
        gate.set()
        assert [call.wait() for call in calls] == ["x" * size] * 2 and ran == ["x" * size] * 2
        near, accepted = a.peers.find("b").link.dialed.flow, b.peers.find("a").link.accepted
        until(lambda: near.traffic()[0] in [each.flow.traffic()[1] for each in accepted if each.flow is not None])
