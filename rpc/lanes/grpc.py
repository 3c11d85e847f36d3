"""gRPC lane: it makes sessions, carries the handshake, and carries all frames if there is no faster transport.

A session has one bidirectional stream for small frames, several per write. It has another stream for bulk data in chunks,
so that a small call never waits behind a tensor. If both workers can, it also has sockets, for small and for large frames. All
belong to one handshake: the others are tied to it by tokens that only its two ends can compute. gRPC's keepalive notices a
silent peer, and needs no GIL.

The streams are asyncio's, on one loop, because threads are no faster: grpc's synchronous streams need about five threads
per pair of workers, several of which wake ten times a second even when idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc

from ...base.errors import RendezvousError
from ...core.futures import interruptible
from ..security.joiners import HANDSHAKE_SECONDS
from ..threads.forking import remember, use_grpc
from ..threads.ioloop import acquire_loop, release_loop
from .dialing import DialingPlaces
from .grpc_dialing import DialedSession
from .grpc_handshake import CHALLENGE, WELCOME_KEY, Acceptor
from .grpc_options import server_options
from .grpc_server import make_server
from .grpc_session import BULK, FRAMES, LARGE, SESSION_CLOSE_SECONDS, SMALL, TOKEN, AcceptedSession
from .grpc_tls import add_port
from .lane import LaneListener, ServingLane
from .large.resources import new_resources
from .poller import Poller
from .socket_setup import SocketAcceptor
from .sockets import worth_offering

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..security.handshake import AcceptorHandshake, SocketTokens
    from .session import Session


class GrpcLane(ServingLane):
    """gRPC server of an agent, and the sessions that the agent dials.

    Args:
        sockets: kinds of sockets that may carry frames, of ``sockets.KINDS``, the preferred first.
    """

    scheme = "grpc"

    def __init__(self, sockets: Sequence[str] = ()) -> None:
        use_grpc()
        self.sockets = sockets
        self._thread = acquire_loop()
        self._server: Any = None
        self._sessions: dict[str, AcceptedSession] = {}
        self._services: dict[str, dict[str, Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()  # of dialed sessions and of accepted streams
        self.poller = Poller(self.loop)
        self.dialing = DialingPlaces()
        self.resources = new_resources()
        self._acceptor: Acceptor
        self._socket_acceptor: SocketAcceptor

    def serve(self, method: str, handler: Callable[[Any, Any], Awaitable[None]]) -> None:
        _, service, name = method.split("/")

        async def serve(request: Any, context: Any) -> None:
            task = asyncio.current_task()
            assert task is not None, "gRPC makes one for each stream"
            self._keep(task)
            await handler(request, context)

        self._services.setdefault(service, {})[name] = grpc.stream_stream_rpc_method_handler(serve)

    async def authenticate(self, context: Any) -> AcceptorHandshake:
        return await self._acceptor.authenticate(context)

    @property
    def last_refusal(self) -> str:
        return self._acceptor.last_refusal

    def listen(self, listener: LaneListener, address: str | None) -> str:
        return self._thread.run(self._listen(listener, address or "127.0.0.1:0"))

    def dial(self, listener: LaneListener, peer: WorkerRecord, address: str) -> Session:
        return DialedSession(self, listener, peer, address)

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
        """Run a part of a session's work until it or the lane ends. On the loop."""
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
                f"this worker cannot listen at {address}; is another job running there, another rank 0, or PyTorch, whose "
                f"torchrun and process groups listen at MASTER_PORT? choose another port (init_method='tcp://host:port'), and "
                f"give each worker its own rank"
            )
        remember(f"{address.rpartition(':')[0]}:{port}")
        await self._server.start()
        host = address.rpartition(":")[0]
        self.offers = self._socket_acceptor.listen(worth_offering(self.sockets, host), host)
        return f"grpc://{host}:{port}"

    async def _accept(self, listener: LaneListener, _: Any, context: Any) -> None:
        handshake = await self.authenticate(context)
        await listener.members_known()
        session = AcceptedSession(self, listener)
        if refusal := listener.admit(handshake, session):
            context.set_trailing_metadata(((WELCOME_KEY, handshake.welcome(refusal)),))
            return
        token, sockets = handshake.session_token(), [handshake.socket_tokens(each) for each in (SMALL, LARGE)]
        self._sessions[token] = session
        for tokens, take in zip(sockets, (session.use_socket, session.use_bulk_socket)):
            self._socket_acceptor.expect(tokens, take, handshake.certificate)
        try:
            await session.run(context, handshake.welcome())
        finally:  # its bulk stream and its sockets may arrive after its end, and must not count as strangers
            self.loop.call_later(HANDSHAKE_SECONDS, self._forget, token, sockets)

    def _forget(self, token: str, sockets: list[SocketTokens]) -> None:
        self._sessions.pop(token)
        for tokens in sockets:
            self._socket_acceptor.forget(tokens)

    async def _accept_bulk(self, _: Any, context: Any) -> None:
        token = dict(context.invocation_metadata()).get(TOKEN, "")
        session = self._sessions.get(token)
        if session is None:
            await self._acceptor.turn_away(context, "it opened a bulk stream without a handshake")
        await session.run_bulk(context)

    async def _close(self) -> None:
        # First the sessions, then the server: gRPC logs an error for a stream that is open when its server has stopped.
        await self._end_tasks(SESSION_CLOSE_SECONDS)
        if self._server is not None:
            self._acceptor.tls_handshakes.close()
            await self._socket_acceptor.close()
            await self._server.stop(SESSION_CLOSE_SECONDS)
        await self._end_tasks(0)  # sessions that were dialed or accepted meanwhile
        self.poller.close()

    async def _end_tasks(self, seconds: float) -> None:
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
