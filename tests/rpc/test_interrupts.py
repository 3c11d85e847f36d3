"""Ctrl-C at every place of a call that blocks: the next call is answered, and nothing is taken that nobody gives back."""

import time
from functools import partial

import numpy as np
import pytest
from helpers.certificates import authority, tls_files
from helpers.interrupts import Interrupter
from telegrad import rpc
from telegrad.base.errors import RpcError, RpcTimeoutError
from telegrad.core.futures import thread_role
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing.cluster import in_process_cluster

pytestmark = [pytest.mark.slow]
LARGE = np.arange(1 << 17)
NARROW = 2 * LARGE.nbytes
LANES = {
    "unix": partial(GrpcLane, ("unix",)),
    "grpc": partial(GrpcLane, ()),
    "inproc": None,
    "tls": partial(GrpcLane, ("tcp",)),
}
SECONDS = 120
# A new segment whose offer was interrupted is not used, and goes with its session, as does one that lost the end of its
# loan (``test_segment_lending.py``): what a finalizer raises goes no further.
SPARED = ("_offer", "_released")


def echo(value):
    return value


def echo_late(value):
    time.sleep(0.002)
    return value


def one(value):
    rpc.rpc_sync("b", echo_late, (value,))


def many():
    """The second half waits for room."""
    for future in [rpc.rpc_async("b", echo_late, (LARGE,)) for _ in range(4)]:
        future.wait()


def again(value, to="b"):
    """Call until the session holds: an interrupted thread may have broken it, and calls on it fail with it."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return rpc.rpc_sync(to, echo, (value,))
        except RpcTimeoutError:
            raise
        except RpcError:
            assert time.monotonic() < deadline
            time.sleep(0.002)


def taken(a, b):
    """Return the things that are not given back, by name; ``None`` while a session is new."""
    near, accepted = a.peers.find("b").link.dialed, b.peers.find("a").link.accepted
    if near is None or near.flow is None or len(accepted) != 1 or accepted[0].flow is None:
        return None
    counts = [_difference(near.flow, accepted[0].flow), _difference(accepted[0].flow, near.flow)]
    found = {"sent and not used": sum(counts), "queued": len(near.flow.queued), "calls": len(a.caller.table)}
    found |= {"requests": len(b.server.serving), "role": thread_role.blocker, "task": thread_role.task}
    if (reading := near.reading) is not None:
        found |= {"turn": reading._turn._is_owned(), "followers": len(reading.followers)}
        found |= {
            "sleepers": reading._sleeper._asleep,
            "unwatched": not reading._watched,
            "unsent": bool(near._stream._writer.waiting),
        }
    return {name: value for name, value in found.items() if value}


def left(a, b):
    """Return the same, once it is nothing, or after some time. A session that breaks only now is dialed again."""
    deadline = time.monotonic() + SECONDS
    while (found := taken(a, b)) != {} and time.monotonic() < deadline:
        if found is None:
            again(7)
        time.sleep(0.002)
    return found


def _difference(sender, receiver):
    window, receipts = sender._window, receiver.receipts
    return abs(window._bytes - receipts._bytes) + abs(window._messages - receipts.messages)


@pytest.mark.parametrize(
    ("lane", "calls"),
    [
        ("unix", [partial(one, 1), partial(one, LARGE), many]),
        ("grpc", [partial(one, 1), partial(one, LARGE)]),
        ("inproc", [partial(one, 1)]),
        ("tls", [partial(one, 1), partial(one, LARGE)]),
    ],
    ids=list(LANES),
)
def test_a_call_that_is_interrupted_anywhere_takes_nothing_with_it(lane, calls, tmp_path):
    tls = tls_files(tmp_path / "tls", authority(), "a") if lane == "tls" else None
    options = GrpcRpcBackendOptions(rpc_timeout=SECONDS, window_bytes=NARROW, tls=tls)
    with in_process_cluster("a", "b", options=options, make_lane=LANES[lane]) as (a, b), a.use():
        for _ in range(12):  # until there are segments
            again(LARGE)
        interrupter = Interrupter(*SPARED)
        for call in calls:
            while (place := interrupted(interrupter, call)) is not None:
                assert again(7) == 7, place
                assert left(a, b) == {}, place
        assert len(interrupter) > 50


def interrupted(interrupter, call):
    """Interrupt a call at a further place, and return that; ``None`` if there is none."""
    while True:
        try:
            return interrupter.run(call)
        except RpcError:  # its session was given up a moment ago
            again(7)


@pytest.mark.parametrize("to", ["a", "b"])
@pytest.mark.parametrize("lane", ["inproc", "unix"])
def test_a_dial_that_is_interrupted_anywhere_is_made_again(lane, to):
    options = GrpcRpcBackendOptions(rpc_timeout=SECONDS)
    with in_process_cluster("a", "b", options=options, make_lane=LANES[lane]) as (a, _), a.use():
        interrupter, place = Interrupter(), ""
        while place is not None:
            again(7, to)
            peer = a.peers.find(to)
            peer.found_closed(peer.link.dialed, 0.0, 1)
            place = interrupted(interrupter, partial(rpc.rpc_sync, to, echo, (1,)))
            assert again(7, to) == 7, place
        assert len(interrupter) > 50
