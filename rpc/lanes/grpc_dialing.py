"""``DialedSession``: the end of a gRPC session that dials: it connects, shakes hands, and opens the sockets."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import grpc

from ..threads.forking import remember
from ..threads.ioloop import call_on_loop, first_of
from .grpc_channel import connect, open_channel
from .grpc_handshake import introduce, translate
from .grpc_options import options_for
from .grpc_session import BULK, FRAMES, LARGE, NO_SOCKET, SESSION_CLOSE_SECONDS, SMALL, TOKEN, GrpcSession, SessionLane
from .socket_setup import open_socket
from .sockets import choose

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..security.handshake import DialerHandshake
    from .lane import LaneListener


class DialedSession(GrpcSession):
    """Session at the end that dialed.

    Args:
        lane: the lane that dials.
        listener: is told of the session's events.
        peer: the worker to reach.
        address: where the worker listens.
    """

    def __init__(self, lane: SessionLane, listener: LaneListener, peer: WorkerRecord, address: str) -> None:
        super().__init__(lane, listener)
        self.number = peer.number
        self._identity = peer.identity
        self._address = address
        self._target = lane.target(peer, address)
        self._tls = listener.tls
        self._certificate_name = peer.certificate_name
        self._secured = self._tls, self._certificate_name
        remember(self._target)

    def start(self) -> None:
        call_on_loop(self._loop, self._lane.keep, self.run)

    async def run(self) -> None:
        """Connect, move frames until the session ends, and tell the listener."""
        error: Exception = ConnectionError("the connection was closed")
        channel = open_channel(self._target, self._tls, self._certificate_name, options_for(self.listener.keepalive))
        try:
            await self._converse(channel)
        except asyncio.CancelledError:
            pass
        except Exception as problem:
            error = problem if isinstance(problem, OSError) else shortage() or translate(problem, self._target)
        finally:
            self._ended()
            await channel.close()
            self.listener.disconnected(self, error)

    async def _converse(self, channel: grpc.aio.Channel) -> None:
        shown = self._tls.fingerprint if self._tls else b""
        handshake = self.listener.dialer_handshake(self._identity, self._address, shown)
        async with self._lane.dialing.place():
            await connect(channel, self._target, self._tls, self._certificate_name, 2 * self.listener.keepalive)
            self.listener.answered(self)
            # No time limit from here on: the peer may hold its GIL for a minute, and keepalive needs no GIL.
            stream = await introduce(channel, FRAMES, handshake)
            self.number = handshake.peer.number
            no_socket = await self._open_socket(handshake)
        if no_socket:
            await stream.write(NO_SOCKET)
            self.use_no_socket(no_socket)
        else:
            self._lane.keep(self._open_bulk_socket)
        self.listener.connected(self)
        bulk = channel.stream_stream(BULK)(metadata=[(TOKEN, handshake.session_token())])
        await first_of(self._pump_frames(stream.read, stream.write, stream.done_writing), self._pump_dialed_bulk(bulk))

    async def _pump_dialed_bulk(self, bulk: Any) -> None:
        await bulk.wait_for_connection()  # here, because the threads that write to it cannot wait
        await self._pump_bulk(bulk.read, bulk.write)
        # The acceptor ends both streams, and on the other one there may still be frames to read.
        await asyncio.sleep(SESSION_CLOSE_SECONDS)

    async def _open_socket(self, handshake: DialerHandshake) -> str:
        """Open a socket for small frames, and use it; return why there is none, or an empty text."""
        kinds = self._lane.sockets
        try:
            offers = choose(kinds, handshake.peer.addresses, self._target)
            connected, kind = await open_socket(offers, handshake.socket_tokens(SMALL), *self._secured)
            self._bulk_offers = [each for each in offers if each.startswith(kind)], handshake.socket_tokens(LARGE)
            self.use_socket(connected, kind)
        except OSError as error:
            return f"no socket: {error}" if kinds else "lanes= of this worker names no socket"
        return ""

    async def _open_bulk_socket(self) -> None:
        try:
            self.use_bulk_socket(*await open_socket(*self._bulk_offers, *self._secured))
        except OSError as error:
            self.lane_note = f"large frames go by gRPC: {error}"


def shortage() -> OSError | None:
    """Return the error with which the system refuses this process a socket now, because gRPC does not report it.

    ``None`` if the system gives one.
    """
    try:
        socket.socket().close()
    except OSError as error:
        return error
    return None
