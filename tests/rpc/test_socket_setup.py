"""Sockets of sessions: which lane is chosen and why, and what a socket must prove before a frame is read from it."""

import asyncio
import resource
import socket
import time
from contextlib import contextmanager, suppress
from functools import partial

import pytest
from telegrad import rpc
from telegrad.agents import make_agent
from telegrad.base.errors import RpcError
from telegrad.rpc.extend import make_lanes
from telegrad.rpc.lanes import socket_setup, sockets
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.rpc.security.handshake import SocketTokens
from telegrad.testing.check_lane import pair

REASON = "it opened a socket that belongs to no connection"


@contextmanager
def agents_with(*lanes):
    made = [
        make_agent(f"w{rank}", rank, lanes=make_lanes(names), secret=b"known in one process")
        for rank, names in enumerate(lanes)
    ]
    try:
        for agent in made:
            agent.listen()
        for agent in made:
            agent.start([other.record for other in made])
        yield made
    finally:
        for agent in made:
            agent.close("its test ended")


def lane_of(agent, peer):
    described = agent.debug_info()["peers"][peer]
    return described["lane"], described["lane_note"]


@pytest.mark.parametrize(
    "names, lane, note",
    [
        ([["unix", "tcp", "grpc"]] * 2, "unix", ""),
        ([["tcp"]] * 2, "tcp", ""),
        ([["grpc"]] * 2, "grpc", "lanes= of this worker names no socket"),
        ([["unix"], ["grpc"]], "grpc", "no socket: the peer offers none"),
        ([["grpc"], ["unix"]], "grpc", "lanes= of this worker names no socket"),
    ],
)
def test_the_lane_and_its_reason_are_told(names, lane, note):
    with agents_with(*names) as (a, _), a.use():
        assert rpc.rpc_sync("w1", abs, (-1,)) == 1
        assert rpc.rpc_sync("w1", len, (b"x" * 500_000,)) == 500_000
        assert lane_of(a, "w1") == (lane, note)


def test_without_a_socket_frames_go_by_grpc(monkeypatch):
    def denied(address):
        raise OSError("none here")

    monkeypatch.setattr(sockets, "endpoint", denied)
    with agents_with(["unix"], ["unix"]) as (a, _), a.use():
        assert rpc.rpc_sync("w1", abs, (-1,)) == 1
        lane, note = lane_of(a, "w1")
        assert lane == "grpc" and "none here" in note


def test_a_worker_of_another_user_gets_no_unix_socket(monkeypatch):
    monkeypatch.setattr(sockets.os, "geteuid", lambda: -2)
    with agents_with(["unix"], ["unix"]) as (a, _), a.use():
        assert rpc.rpc_sync("w1", abs, (-1,)) == 1
        lane, note = lane_of(a, "w1")
        assert lane == "grpc" and "of user" in note


def connect(address):
    stranger, target = sockets.endpoint(address)
    stranger.settimeout(20)
    stranger.connect(target)
    return stranger


def hung_up_on(stranger):
    with stranger:
        try:
            return stranger.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.mark.parametrize("kind", ["unix", "tcp"])
@pytest.mark.parametrize("words", [b"", b"x" * 10, b"x" * 48, b"x" * 100_000])
def test_a_stranger_at_the_socket_is_hung_up_on_and_counted(kind, words, until):
    with agents_with([kind], [kind]) as (a, b), a.use():
        stranger = connect(b.record.addresses[1])
        with suppress(OSError):  # it may be hung up on before it has said all
            stranger.sendall(words)
            stranger.shutdown(socket.SHUT_WR)
        assert hung_up_on(stranger)
        until(lambda: b.sessions.refusals.counts() == {REASON: 1})
        assert rpc.rpc_sync("w1", abs, (-1,)) == 1
        assert lane_of(a, "w1")[0] == kind


def test_a_crowd_that_says_nothing_displaces_its_own(monkeypatch):
    monkeypatch.setattr(socket_setup, "MOST_UNPROVEN", 2)
    with agents_with(["unix"], ["unix"]) as (a, b), a.use():
        crowd = [connect(b.record.addresses[1]) for _ in range(5)]
        for stranger in crowd[:3]:
            assert hung_up_on(stranger)
        assert rpc.rpc_sync("w1", abs, (-1,)) == 1
        assert lane_of(a, "w1")[0] == "unix"
        for stranger in crowd:
            stranger.close()


def test_a_stranger_that_says_nothing_has_a_deadline(monkeypatch):
    monkeypatch.setattr(socket_setup, "HANDSHAKE_SECONDS", 0.05)
    with agents_with(["unix"], ["unix"]) as (_, b):
        assert hung_up_on(connect(b.record.addresses[1]))


@pytest.mark.parametrize("turns", range(5))
async def test_a_stranger_that_comes_as_the_acceptor_closes_is_hung_up_on(turns):
    """However far it has come: nobody forgets its socket, which would be a ResourceWarning."""
    acceptor = socket_setup.SocketAcceptor(lambda *_: None, None)
    (address,) = acceptor.listen(["unix"], "127.0.0.1")
    await asyncio.sleep(0)
    stranger = connect(address)
    for _ in range(turns):
        await asyncio.sleep(0)
    await acceptor.close()
    assert hung_up_on(stranger)


async def test_sockets_are_accepted_again_after_the_system_gave_no_socket(monkeypatch):
    monkeypatch.setattr(socket_setup, "PAUSE_SECONDS", 0.001)
    refusals = []
    acceptor = socket_setup.SocketAcceptor(lambda *words: refusals.append(words), None)
    (address,) = acceptor.listen(["unix"], "127.0.0.1")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    stranger = connect(address)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (stranger.fileno() + 1, limits[1]))
        await asyncio.sleep(0.01)
        assert not acceptor._setups and not refusals
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    stranger.shutdown(socket.SHUT_WR)
    while not refusals:
        await asyncio.sleep(0.001)
    assert hung_up_on(stranger)
    await acceptor.close()


@pytest.mark.parametrize("closes_far", [False, True])
def test_a_broken_socket_breaks_its_session(closes_far, monkeypatch):
    monkeypatch.setattr("telegrad.rpc.lanes.grpc_session.SESSION_CLOSE_SECONDS", 0.2)
    with pair(partial(GrpcLane, ["unix"])) as both:
        far_end = both.talk()
        both.acceptor.until(lambda: far_end._stream is not None)
        (far_end if closes_far else both.session)._stream._socket.shutdown(socket.SHUT_RDWR)
        for listener in (both.dialer, both.acceptor):
            listener.until(lambda listener=listener: bool(listener.ended))
            assert isinstance(listener.ended[0][1], ConnectionResetError)


def test_calls_go_on_over_a_new_session_after_the_socket_broke():
    with agents_with(["unix"], ["unix"]) as (a, _), a.use():
        assert rpc.rpc_sync("w1", abs, (-1,)) == 1
        a.peers.at(1).link.dialed._stream._socket.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                assert rpc.rpc_sync("w1", abs, (-1,), timeout=10) == 1
                break
            except RpcError:  # the call that was under way
                continue
        assert lane_of(a, "w1")[0] == "unix"


def test_a_socket_that_hangs_up_while_sockets_are_to_come_is_not_refused(until):
    with agents_with(["unix"], ["unix"]) as (_, b):
        acceptor = b.sessions.lanes["grpc"]._socket_acceptor
        tokens = SocketTokens(b"n" * 16, b"d" * 32, b"a" * 32)
        acceptor.expect(tokens, lambda *given: None)
        connect(b.record.addresses[1]).close()
        with connect(b.record.addresses[1]) as stranger:  # one that lies is still counted
            stranger.sendall(b"x" * 48)
            until(lambda: b.sessions.refusals.counts() == {REASON: 1})
