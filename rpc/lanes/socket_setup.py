"""Setup of a connection's socket: its dialer connects to where the acceptor listens, and both prove whose socket it is.

    dialer -> acceptor:  name of the connection | the dialer's token
    acceptor -> dialer:  the acceptor's token

Name and tokens come from the handshake of the connection (``security.SocketTokens``), so only its two ends know them. Each
counts once. If the worker has TLS, a TCP socket begins with a TLS handshake, in which both ends show the certificates that
they have shown for the connection. Until all this is done nothing else is read, and a visitor gets ``HANDSHAKE_SECONDS`` and
one of ``MOST_VISITORS`` places.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ..joiners import HANDSHAKE_SECONDS
from ..security import SOCKET_NAME_BYTES, SOCKET_TOKEN_BYTES, SocketTokens
from ..tls import Tls
from . import sockets
from .tls_socket import TlsSocket

MOST_VISITORS = 512  # sockets that have not proven whose they are; at least the workers that dial at the same time
PAUSE_SECONDS = 0.1  # after the system gave no socket
Take = Callable[[Any, str], None]
Refuse = Callable[[str, str], None]


class SocketAcceptor:
    """Listening sockets of one lane, which give each connection the socket that its dialer opens. Used on the lane's loop.

    Args:
        refused: called with where a visitor that was turned away came from, and why.
        tls: what this end shows on TCP sockets; None without TLS.
    """

    def __init__(self, refused: Refuse, tls: Tls | None) -> None:
        self._refused = refused
        self._tls = tls
        self._expected: dict[bytes, tuple[SocketTokens, Take, bytes]] = {}
        self._listening: list[socket.socket] = []
        self._closed = False
        self._visits: dict[asyncio.Task[bool], None] = {}  # the oldest first

    def listen(self, kinds: Sequence[str], host: str) -> list[str]:
        """Listen on a socket of each kind; return their addresses, without those that the system does not give."""
        addresses = []
        for kind in kinds:
            with suppress(OSError):
                listening, address = sockets.listen(kind, host)
                self._listening.append(listening)
                self._watch(listening, kind)
                addresses.append(address)
        return addresses

    def expect(self, tokens: SocketTokens, take: Take, certificate: bytes = b"") -> None:
        """Give the socket that proves to belong to these tokens to ``take(socket, kind)``, once.

        Args:
            tokens: of the connection.
            take: gets the socket.
            certificate: fingerprint of what its dialer has shown for the connection, and shows again if there is TLS.
        """
        self._expected[tokens.name] = (tokens, take, certificate)

    def forget(self, tokens: SocketTokens) -> None:
        """Expect the socket of these tokens no longer."""
        self._expected.pop(tokens.name, None)

    async def close(self) -> None:
        """Stop listening, and end the visits."""
        self._closed = True
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        visits = [*self._visits]
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)

    def _watch(self, listening: socket.socket, kind: str) -> None:
        if not self._closed:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening, kind)

    def _accept(self, listening: socket.socket, kind: str) -> None:
        """Take the next visitor. Without a coroutine: one that is cancelled may drop a socket that was accepted."""
        loop = asyncio.get_running_loop()
        try:
            visitor, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # it has left
        except OSError:
            loop.remove_reader(listening)
            loop.call_later(PAUSE_SECONDS, self._watch, listening, kind)
            return
        visit = loop.create_task(self._visit(visitor, kind))
        self._visits[visit] = None
        visit.add_done_callback(partial(self._visited, visitor))
        if len(self._visits) > MOST_VISITORS:
            oldest = next(iter(self._visits))
            del self._visits[oldest]  # at once: several may come before its end
            oldest.cancel()

    def _visited(self, visitor: socket.socket, visit: asyncio.Task[bool]) -> None:
        self._visits.pop(visit, None)
        if visit.cancelled() or not visit.result():  # perhaps it never began
            visitor.close()

    async def _visit(self, visitor: socket.socket, kind: str) -> bool:
        """Give a visitor's socket to the connection that it belongs to; return False if there is none."""
        try:
            sockets.prepare(visitor)
            secured = visitor if kind == "unix" or self._tls is None else TlsSocket(visitor, self._tls, None)
            take = await asyncio.wait_for(self._check(secured), HANDSHAKE_SECONDS)
        except Exception as error:
            # One that hung up may be a worker that has ended meanwhile, as long as sockets of connections are to come.
            if not (isinstance(error, ConnectionError) and self._expected):
                self._refused(f"{kind} socket", "it opened a socket that belongs to no connection")
            return False
        take(secured, kind)
        return True

    async def _check(self, visitor: socket.socket | TlsSocket) -> Take:
        shown = await visitor.handshake() if isinstance(visitor, TlsSocket) else None
        said = await _read_exactly(visitor, SOCKET_NAME_BYTES + SOCKET_TOKEN_BYTES)
        tokens, take, certificate = self._expected[said[:SOCKET_NAME_BYTES]]
        if shown is not None and shown != certificate:
            raise PermissionError("it shows another certificate than for the connection")
        if not hmac.compare_digest(said[SOCKET_NAME_BYTES:], tokens.dialer):
            raise PermissionError("its token is wrong")
        self.forget(tokens)
        await _send(visitor, tokens.acceptor)
        return take


async def open_socket(addresses: Sequence[str], tokens: SocketTokens, tls: Tls | None, name: str) -> tuple[Any, str]:
    """Return a socket to a peer, of which both ends have proven whose it is, and its kind.

    Args:
        addresses: where the peer listens, in the order in which they are tried.
        tokens: of the connection.
        tls: what this end shows on a TCP socket; None without TLS.
        name: name that the certificate of the other end must then carry.

    Raises:
        OSError: none of them can be had; the message says why.
    """
    problems = []
    for address in addresses:
        try:
            kind = address.partition("://")[0]
            return await asyncio.wait_for(
                _open(address, tokens, tls if kind == "tcp" else None, name), HANDSHAKE_SECONDS
            ), kind
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            problems.append(f"{address}: {error or type(error).__name__}")
    raise OSError("; ".join(problems) or "the peer offers none")


async def _open(address: str, tokens: SocketTokens, tls: Tls | None, name: str) -> socket.socket | TlsSocket:
    made, target = sockets.endpoint(address)
    secured: socket.socket | TlsSocket = made
    try:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(made, target)
        sockets.prepare(made)
        if tls is not None:
            secured = TlsSocket(made, tls, name)
            await secured.handshake()
        await _send(secured, tokens.name + tokens.dialer)
        if not hmac.compare_digest(await _read_exactly(secured, SOCKET_TOKEN_BYTES), tokens.acceptor):
            raise PermissionError("its token is wrong")
    except BaseException:
        made.close()
        raise
    return secured


async def _send(target: socket.socket | TlsSocket, data: bytes) -> None:
    if isinstance(target, TlsSocket):
        await target.send_all(data)
    else:
        await asyncio.get_running_loop().sock_sendall(target, data)


async def _read_exactly(source: socket.socket | TlsSocket, size: int) -> bytes:
    """Return the next ``size`` bytes, and read none beyond."""
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < size:
        if isinstance(source, TlsSocket):
            piece = await source.receive(size - len(data))
        else:
            piece = await loop.sock_recv(source, size - len(data))
        if not piece:
            raise ConnectionResetError("it hung up")
        data += piece
    return data
