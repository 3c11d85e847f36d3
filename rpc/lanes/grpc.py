"""gRPC lane: it makes connections, carries the handshake, and carries all frames if there is no faster transport.

A connection has one bidirectional stream for small frames, several per write. It has another stream for bulk data in chunks,
so that a small call never waits behind a tensor. If both workers can, it also has sockets, for small and for large frames. All
belong to one handshake: the others are tied to it by tokens that only its two ends can compute. gRPC's keepalive notices a
silent peer, and needs no GIL.

The streams are asyncio's, on one loop, because threads are no faster: grpc's synchronous streams need about five threads
per pair of workers, several of which wake ten times a second even when idle.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import grpc

from ...core.errors import RendezvousError
from ...core.futures import interruptible
from ...proto.rpc_pb2 import WorkerRecord
from ..security.handshake import AcceptorHandshake, DialerHandshake, SocketTokens
from ..security.joiners import HANDSHAKE_SECONDS
from ..threads.forking import remember, use_grpc
from ..threads.ioloop import acquire_loop, call_on_loop, first_of, release_loop
from .base import Connection, Lane, LaneListener
from .dialing import DialingPlaces
from .grpc_channel import connect, open_channel
from .grpc_connection import CLOSE_SECONDS, NO_SOCKET, AcceptedConnection, GrpcConnection
from .grpc_handshake import CHALLENGE, WELCOME_KEY, Acceptor, introduce, translate
from .grpc_server import make_server
from .grpc_tls import add_port
from .large.resources import new_resources
from .poller import Poller
from .socket_setup import SocketAcceptor, open_socket
from .sockets import choose, worth_offering

FRAMES = "/telegrad.Lane/Frames"
BULK = "/telegrad.Lane/Bulk"
TOKEN = "telegrad-session"
SMALL, LARGE = "small frames", "large frames"  # purposes of the sockets of a connection
MESSAGE_BYTES = 4 * 1024 * 1024  # the largest message is a chunk or a batch of small frames
METADATA_BYTES = 16 * 1024
LONGEST_MILLISECONDS = 2**31 - 1  # largest value of an option; for gRPC it means "never"
STREAMS = 4  # of a connection: frames, bulk, and the challenge before them
OPTIONS = [
    ("grpc.so_reuseport", 0),  # with it, two servers would share a port and neither would notice
    ("grpc.enable_http_proxy", 0),  # a proxy of the environment could read and change messages
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 50),  # low, because the peer chooses how often it pings
]


def options_for(keepalive: float) -> list[tuple[str, int]]:
    """Return gRPC's options for an agent that asks for a sign of life after ``keepalive`` seconds of silence."""
    milliseconds = max(int(min(keepalive * 1000, LONGEST_MILLISECONDS)), 1)
    return [
        *OPTIONS,
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds),
        ("grpc.http2.ping_timeout_ms", milliseconds),  # else it is a minute, whatever keepalive says
        ("grpc.http2.min_ping_interval_without_data_ms", milliseconds // 2),
    ]


def server_options(keepalive: float) -> list[tuple[str, int]]:
    """Return gRPC's options for a server, with limits for peers that have not proven that they know the secret."""
    milliseconds = int(HANDSHAKE_SECONDS * 1000)
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [
        *options_for(keepalive),
        ("grpc.server_handshake_timeout_ms", milliseconds),
        ("grpc.max_connection_idle_ms", milliseconds),  # idle: without a stream
        ("grpc.max_concurrent_streams", STREAMS),
        ("grpc.max_allowed_incoming_connections", max(descriptors // 2, 1)),  # the process needs descriptors too
    ]


class DialedConnection(GrpcConnection):
    """Connection at the end that dialed.

    Args:
        lane: the lane that dials.
        listener: is told of the connection's events.
        peer: the worker to reach.
        address: where the worker listens.
    """

    def __init__(self, lane: GrpcLane, listener: LaneListener, peer: WorkerRecord, address: str) -> None:
        super().__init__(lane.loop, listener, lane.poller, lane.resources)
        self._lane = lane
        self.number = peer.number
        self._identity = peer.identity
        self._address = address
        self._target = lane.target(peer, address)
        self._tls = listener.tls
        self._certificate_name = peer.certificate_name
        self._secured = self._tls, self._certificate_name
        remember(self._target)

    def start(self) -> None:
        call_on_loop(self._lane.loop, self._lane.keep, self.run)

    async def run(self) -> None:
        """Connect, move frames until the connection ends, and tell the listener."""
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
            has_socket = await self._open_socket(handshake)
        if not has_socket:
            await stream.write(NO_SOCKET)
        else:
            self._lane.keep(self._open_bulk_socket)
        self.opened = True
        self.listener.connected(self)
        bulk = channel.stream_stream(BULK)(metadata=[(TOKEN, handshake.session_token())])
        await first_of(self._pump_frames(stream.read, stream.write, stream.done_writing), self._pump_dialed_bulk(bulk))

    async def _pump_dialed_bulk(self, bulk: Any) -> None:
        await bulk.wait_for_connection()  # here, because the threads that write to it cannot wait
        await self._pump_bulk(bulk.read, bulk.write)
        # The acceptor ends both streams, and on the other one there may still be frames to read.
        await asyncio.sleep(CLOSE_SECONDS)

    async def _open_socket(self, handshake: DialerHandshake) -> bool:
        kinds = self._lane.sockets
        try:
            offers = choose(kinds, handshake.peer.addresses, self._target)
            connected, kind = await open_socket(offers, handshake.socket_tokens(SMALL), *self._secured)
            self._bulk_offers = [each for each in offers if each.startswith(kind)], handshake.socket_tokens(LARGE)
            self.use_socket(connected, kind)
        except OSError as error:
            self.use_no_socket(f"no socket: {error}" if kinds else "lanes= of this worker names no socket")
            return False
        return True

    async def _open_bulk_socket(self) -> None:
        try:
            self.use_bulk_socket(*await open_socket(*self._bulk_offers, *self._secured))
        except OSError as error:
            self.lane_note = f"large frames go by gRPC: {error}"


class GrpcLane(Lane):
    """gRPC server of an agent, and the connections that the agent dials.

    Args:
        sockets: kinds of sockets that may carry frames, of ``sockets.KINDS``, the preferred first.
    """

    scheme = "grpc"

    def __init__(self, sockets: Sequence[str] = ()) -> None:
        use_grpc()
        self.sockets = sockets
        self._thread = acquire_loop()
        self._server: Any = None
        self._sessions: dict[str, AcceptedConnection] = {}
        self._services: dict[str, dict[str, Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()  # of dialed connections and of accepted streams
        self.poller = Poller(self.loop)
        self.dialing = DialingPlaces()
        self.resources = new_resources()
        self._acceptor: Acceptor
        self._socket_acceptor: SocketAcceptor

    def serve(self, method: str, handler: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Serve streams of ``method`` ("/service/method") with ``handler(_, context)``; before ``listen``."""
        _, service, name = method.split("/")

        async def serve(request: Any, context: Any) -> None:
            task = asyncio.current_task()
            assert task is not None, "gRPC makes one for each stream"
            self._keep(task)
            await handler(request, context)

        self._services.setdefault(service, {})[name] = grpc.stream_stream_rpc_method_handler(serve)

    async def authenticate(self, context: Any) -> AcceptorHandshake:
        """Return the handshake with which a stream of such a handler was opened; end the stream if its proof is wrong."""
        return await self._acceptor.authenticate(context)

    @property
    def last_refusal(self) -> str:
        """Return the address of the joiner that was refused last, and the reason; empty if none was refused."""
        return self._acceptor.last_refusal

    def listen(self, listener: LaneListener, address: str | None) -> str:
        return self._thread.run(self._listen(listener, address or "127.0.0.1:0"))

    def dial(self, listener: LaneListener, peer: WorkerRecord, address: str) -> Connection:
        return DialedConnection(self, listener, peer, address)

    def target(self, peer: WorkerRecord, address: str) -> str:
        """Return the "host:port" to connect to for an address of ``peer``. A subclass may return that of a relay."""
        return address.removeprefix("grpc://")

    def close(self) -> None:
        closing = asyncio.run_coroutine_threadsafe(self._close(), self.loop)
        if self._thread.is_current():  # the agent closes itself on the loop's thread, which must not wait
            closing.add_done_callback(lambda _: release_loop())
            return
        try:
            interruptible(closing.result)
        finally:
            release_loop()  # also if Ctrl-C ended the wait, so that the loop can end

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop on which everything of this lane runs."""
        return self._thread.loop

    def keep(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a part of a connection's work until it or the lane ends. On the loop."""
        self._keep(self.loop.create_task(work()))

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self, listener: LaneListener, address: str) -> str:
        self._acceptor = Acceptor(listener)
        self._socket_acceptor = SocketAcceptor(listener.refused, listener.tls)
        self.serve(FRAMES, partial(self._accept, listener))
        self.serve(BULK, self._accept_bulk)
        self.serve(CHALLENGE, self._acceptor.challenge)
        self._server = make_server(server_options(listener.keepalive), self._services)
        port = add_port(self._server, address, listener.tls, self._acceptor.tls_handshakes.begun)
        if port == 0:
            await self._server.start()  # a server that was not started cannot be stopped, and gRPC never frees it
            raise RendezvousError(
                f"this worker cannot listen at {address}; is another job running there, or another rank 0? choose another "
                f"port, and give each worker its own rank"
            )
        remember(f"{address.rpartition(':')[0]}:{port}")
        await self._server.start()
        host = address.rpartition(":")[0]
        self.offers = self._socket_acceptor.listen(worth_offering(self.sockets, host), host)
        return f"grpc://{host}:{port}"

    async def _accept(self, listener: LaneListener, _: Any, context: Any) -> None:
        handshake = await self.authenticate(context)
        await listener.members_known()
        connection = AcceptedConnection(self.loop, listener, self.poller, self.resources)
        if refusal := listener.admit(handshake, connection):
            context.set_trailing_metadata(((WELCOME_KEY, handshake.welcome(refusal)),))
            return
        token, sockets = handshake.session_token(), [handshake.socket_tokens(each) for each in (SMALL, LARGE)]
        self._sessions[token] = connection
        for tokens, take in zip(sockets, (connection.use_socket, connection.use_bulk_socket)):
            self._socket_acceptor.expect(tokens, take, handshake.certificate)
        try:
            await connection.run(context, handshake.welcome())
        finally:  # its bulk stream and its sockets may arrive after its end, and must not count as strangers
            self.loop.call_later(HANDSHAKE_SECONDS, self._forget, token, sockets)

    def _forget(self, token: str, sockets: list[SocketTokens]) -> None:
        self._sessions.pop(token)
        for tokens in sockets:
            self._socket_acceptor.forget(tokens)

    async def _accept_bulk(self, _: Any, context: Any) -> None:
        token = dict(context.invocation_metadata()).get(TOKEN, "")
        connection = self._sessions.get(token)
        if connection is None:
            await self._acceptor.turn_away(context, "it opened a bulk stream without a handshake")
        await connection.run_bulk(context)

    async def _close(self) -> None:
        # First the connections, then the server: gRPC logs an error for a stream that is open when its server has stopped.
        await self._end_tasks(CLOSE_SECONDS)
        if self._server is not None:
            self._acceptor.tls_handshakes.close()
            await self._socket_acceptor.close()
            await self._server.stop(CLOSE_SECONDS)
        await self._end_tasks(0)  # connections that were dialed or accepted meanwhile
        self.poller.close()

    async def _end_tasks(self, seconds: float) -> None:
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def shortage() -> OSError | None:
    """Return the error with which the system refuses this process a socket now, because gRPC does not report it.

    ``None`` if the system gives one.
    """
    try:
        socket.socket().close()
    except OSError as error:
        return error
    return None
