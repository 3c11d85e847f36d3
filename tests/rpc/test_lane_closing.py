"""A gRPC lane that closes says nothing, whatever goes on meanwhile: gRPC would show tracebacks of its own."""

import asyncio
import socket
import struct
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import grpc
import pytest
from helpers.programs import PROGRAMS
from telegrad import rpc
from telegrad.agents import make_agent
from telegrad.base.errors import RpcError
from telegrad.rpc.lanes.frame import WaitingFrame
from telegrad.rpc.lanes.grpc import BULK, TOKEN, GrpcLane
from telegrad.rpc.lanes.grpc_session import AcceptedSession
from telegrad.rpc.lanes.large.resources import new_resources
from telegrad.rpc.threads.ioloop import call_on_loop
from telegrad.testing.check_lane import pair
from telegrad.testing.cluster import in_process_cluster

METHOD = "/test/Stream"
PROGRAM = PROGRAMS / "closing.py"


def agent_on(lane, name="a", rank=0):
    agent = make_agent(name, rank, lanes=[lane], secret=b"known in one process")
    agent.listen()
    return agent


def channel_to(agent):
    return grpc.insecure_channel(agent.record.addresses[0].removeprefix("grpc://"))


@pytest.mark.parametrize("how", ["exit", "shutdown", "interrupt"])
def test_workers_that_close_under_load_write_nothing(how, run_python):
    run_python(PROGRAM, "--rounds", "2", "--hows", how)


def test_a_stream_that_takes_a_while_to_end_is_waited_for(caplog):
    begun, ended = threading.Event(), threading.Event()

    async def slow_to_end(_, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # its dialer is gone
            await asyncio.sleep(0.2)
            ended.set()

    lane = GrpcLane()
    lane.serve(METHOD, slow_to_end)
    agent = agent_on(lane)
    agent.start([agent.record])
    with channel_to(agent) as channel:
        call = channel.stream_stream(METHOD)(iter(()))
        assert begun.wait(30)
        call.cancel()
    agent.close()
    assert ended.is_set()
    assert not caplog.records


def test_a_bulk_stream_that_arrives_after_its_session_is_no_strangers(until):
    lane = GrpcLane()
    a, b = agent_on(lane), agent_on(GrpcLane(), "b", 1)
    for agent in (a, b):
        agent.start([a.record, b.record])
    with b.use():
        assert rpc.rpc_sync("a", abs, (-1,)) == 1
    (token, session), *_ = lane._sessions.items()
    b.close()
    until(session.over.done)
    with channel_to(a) as channel:
        assert list(channel.stream_stream(BULK)(iter(()), metadata=[(TOKEN, token)])) == []
        assert a.sessions.refusals.counts() == {}
        with pytest.raises(grpc.RpcError):
            list(channel.stream_stream(BULK)(iter(()), metadata=[(TOKEN, "a stranger's")]))
        assert a.sessions.refusals.counts() == {"it opened a bulk stream without a handshake": 1}
    a.close()


def test_an_agent_that_closes_on_the_io_loop_waits_for_nothing(until):
    """No thread was to be had for it: it must not wait for the loop on which it runs."""
    before = set(threading.enumerate())
    a, b = agent_on(GrpcLane()), agent_on(GrpcLane(), "b", 1)
    for agent in (a, b):
        agent.start([a.record, b.record])
    with a.use():
        assert rpc.rpc_sync("b", abs, (-1,)) == 1
    a.timers.soon(a.close)
    until(lambda: a.closed)
    b.close()
    until(lambda: not [each for each in set(threading.enumerate()) - before if each.name.startswith("telegrad")])


def test_a_session_that_is_dialed_while_its_lane_closes_ends_with_it(monkeypatch):
    """The lane has not waited for it, and watches its socket until it ends."""
    monkeypatch.setattr("telegrad.rpc.lanes.grpc.SESSION_CLOSE_SECONDS", 0.1)

    async def dials_at_the_end():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            both.session.start()
            while not (both.dialer.opened or both.dialer.ended):
                await asyncio.sleep(0.01)

    with pair(partial(GrpcLane, ("tcp",))) as both:
        call_on_loop(both.near.loop, both.near.keep, dials_at_the_end)
        both.near.close()
        assert both.dialer.opened == [end for end, _ in both.dialer.ended] == [both.session]
        both.near = GrpcLane()


async def test_a_session_that_ends_as_its_last_frame_leaves_waits_for_nothing():
    """The cancellation of its writing came to nothing, and one of five shutdowns took CLOSE_SECONDS."""
    said = []

    class Side:
        async def finish(self):
            writing.cancel()

        async def say_end(self):
            said.append("the end")

    lane = SimpleNamespace(loop=asyncio.get_running_loop(), resources=new_resources())
    session = AcceptedSession(lane, None)
    session.large = Side()
    session._decided.set()
    session._frames.end()
    writing = asyncio.ensure_future(session._write_frames(said.append, session.large.say_end))
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(writing, 30)
    assert not said


class Value:
    """Object that can be referred to weakly."""


released = threading.Event()


def wait_for_release():
    released.wait(30)


def break_socket(session):
    """Close the socket of a session so that its other end gets an error, not the end of the stream."""
    stream = session._stream
    stream._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.end(ConnectionResetError("broken by a test"))


def read_by(until, thread, work, reading):
    """Start work that waits for its release until it reads the socket itself: at times the loop has the turn."""
    for _ in range(100):
        released.clear()
        waiting = thread(work)
        until(lambda: reading._sleeper._asleep or reading.followers)
        if reading._sleeper._asleep:
            return waiting
        released.set()
        waiting.join(30)
    raise AssertionError("the loop has read each time")


def test_a_broken_socket_keeps_nothing_of_the_thread_that_read_it(thread, until, no_collector):
    """The error of the socket was raised in the frames of a user who waited for an answer."""
    kept, failures = [], []

    def wait():
        value = Value()
        kept.append(weakref.ref(value))
        with a.use():
            rpc.rpc_sync("b", wait_for_release)

    def wait_in_vain():
        try:
            wait()
        except RpcError as error:  # pytest.raises would keep it
            failures.append(str(error))

    with in_process_cluster("a", "b", make_lane=partial(GrpcLane, ("tcp",))) as (a, b):
        with a.use():
            rpc.rpc_sync("b", abs, (1,))
        session = a.peers.at(1).link.dialed
        waiting = read_by(until, thread, wait_in_vain, session.reading)
        break_socket(b.peers.at(0).link.accepted[0])
        waiting.join(30)
        released.set()
        until(lambda: not any(each() for each in kept))
        assert "broke during the call" in failures[0]
        poller, stream = session._lane.poller, session._stream
        stream.watch_input(True)  # as a thread that leaves the reading late
        until(lambda: stream._watch._closed)
        assert stream not in poller._owners.values()


class Interrupted:
    """Socket whose thread gets Ctrl-C as it writes."""

    def send(self, data):
        raise KeyboardInterrupt


def test_a_thread_that_is_interrupted_as_it_writes_for_others_gives_the_session_up(until):
    """Before a thread waits for an answer, it writes what others have left to be written."""

    def answers():
        try:
            return rpc.rpc_sync("b", abs, (-1,), timeout=5) == 1
        except RpcError:
            return False

    with in_process_cluster("a", "b", make_lane=partial(GrpcLane, ("tcp",))) as (a, _), a.use():
        assert answers()
        stream = a.peers.at(1).link.dialed._stream
        writer = stream._writer
        writer._target, target = Interrupted(), writer._target
        writer.waiting.append(WaitingFrame(b"", None))
        with pytest.raises(KeyboardInterrupt):
            stream.flush_waiting()
        writer._target = target
        until(answers)
        assert a.peers.at(1).link.dialed._stream is not stream
