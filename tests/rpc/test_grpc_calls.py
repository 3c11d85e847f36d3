"""The gRPC lane's streams: how often the loop is woken for small calls, and which stream ends first."""

import asyncio
import itertools
from functools import partial
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
from telegrad import rpc
from telegrad.base.errors import SerializationError
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.lanes.frame import SCATTERED
from telegrad.rpc.lanes.grpc import DialedSession, GrpcLane
from telegrad.rpc.lanes.grpc_bulk import GrpcBulkPipe, UnitStream
from telegrad.rpc.lanes.large.transfer import Kind
from telegrad.rpc.lanes.large.writer import UnitMemoryError
from telegrad.testing.cluster import in_process_cluster

CALLS = 100
LARGE = np.zeros(5 << 20, np.uint8)


def test_frames_leave_without_the_loop(monkeypatch):
    woken = []
    with in_process_cluster("a", "b", make_lane=GrpcLane) as (a, _), a.use():
        for _ in range(10):
            rpc.rpc_sync("b", abs, (-1,))
        loop = a.peers.find("b").link.dialed._loop
        wake = loop.call_soon_threadsafe

        def count(*args, **kwargs):
            woken.append(args)
            return wake(*args, **kwargs)

        monkeypatch.setattr(loop, "call_soon_threadsafe", count)
        for _ in range(CALLS):
            rpc.rpc_sync("b", abs, (-1,))
        monkeypatch.undo()
    assert len(woken) < CALLS / 2  # two a call when each frame was handed over


class EndedStream:
    """Stream that the acceptor has ended, and that has brought nothing."""

    async def wait_for_connection(self):
        pass

    async def read(self):
        return grpc.aio.EOF

    async def write(self, message):
        raise AssertionError("there is nothing to write")


def test_the_end_of_the_bulk_stream_leaves_time_to_read_the_last_frames():
    async def run():
        session = DialedSession.__new__(DialedSession)
        buffers = SimpleNamespace(take=None)
        session._bulk = GrpcBulkPipe(asyncio.get_running_loop(), buffers, lambda: None)
        pumping = asyncio.ensure_future(session._pump_dialed_bulk(EndedStream()))
        for _ in range(50):  # turns of the loop, in which another stream is read
            await asyncio.sleep(0)
        assert not pumping.done()
        pumping.cancel()
        await asyncio.gather(pumping, return_exceptions=True)

    asyncio.run(run())


def test_a_frame_whose_segments_went_with_its_session_is_dropped():
    def received(data):
        raise SerializationError("its segment is not there")

    session = DialedSession.__new__(DialedSession)
    scattered, session.closed = SimpleNamespace(received=received), True
    session._received_notice(scattered, bytes([SCATTERED]))
    session.closed = False
    with pytest.raises(SerializationError):
        session._received_notice(scattered, bytes([SCATTERED]))


def give():
    return LARGE


@pytest.mark.parametrize("after", [0, 1], ids=["before", "after its first chunk"])
@pytest.mark.parametrize(("function", "args"), [(give, ()), (len, (LARGE,))], ids=["answer", "request"])
def test_a_message_for_whose_copy_there_is_no_memory_takes_no_room(monkeypatch, function, args, after):
    sendmsg, calls = UnitStream.sendmsg, itertools.count()

    def fail(stream, parts, *rest):
        if len(parts) > 1 or parts[0][0] != Kind.CUT:
            number = next(calls)
            if number >= after:
                raise UnitMemoryError("no room")
        return sendmsg(stream, parts, *rest)

    options = GrpcRpcBackendOptions(rpc_timeout=20, window_bytes=2 * LARGE.nbytes)
    with in_process_cluster("a", "b", options=options, make_lane=partial(GrpcLane, ())) as (a, _), a.use():
        rpc.rpc_sync("b", len, (LARGE,))
        with monkeypatch.context() as patch:
            patch.setattr(UnitStream, "sendmsg", fail)
            for _ in range(4):  # as many as two windows
                calls = itertools.count()
                with pytest.raises(MemoryError, match="no room"):
                    rpc.rpc_sync("b", function, args)
        assert len(rpc.rpc_sync("b", give)) == rpc.rpc_sync("b", len, (LARGE,)) == LARGE.nbytes
