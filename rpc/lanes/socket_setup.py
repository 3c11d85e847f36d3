"""Setup of a session's socket: the dialer connects to the acceptor, and both prove to which session it belongs.

    dialer -> acceptor:  name of the session | the dialer's token
    acceptor -> dialer:  the acceptor's token

Name and tokens come from the handshake of the session (``security.SocketTokens``), so only its two ends know them. Each
is valid once. If the worker has TLS, a TCP socket begins with a TLS handshake, in which both ends show the same certificates
as for the session. Until all this is done nothing else is read. It must be done within ``HANDSHAKE_SECONDS``, and at most
``MOST_UNPROVEN`` accepted sockets are in this state.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ..security.handshake import SOCKET_NAME_BYTES, SOCKET_TOKEN_BYTES, SocketTokens
from ..security.joiners import HANDSHAKE_SECONDS
from ..threads.ioloop import within
from . import sockets
from .stream_socket import PlainSocket, StreamSocket
from .tls_socket import TlsSocket

if TYPE_CHECKING:
    from ..security.tls import Tls

MOST_UNPROVEN = 512  # sockets that have not proven their session; at least the workers that dial at the same time
PAUSE_SECONDS = 0.1  # wait after the system gave no socket
Take = Callable[[Any, str], None]
Refuse = Callable[[str, str], None]


class SocketAcceptor:
    """Listening sockets of one lane. They give each session the socket that its dialer opens. Used on the lane's loop.

    Args:
        refused: called for each socket that was turned away, with its kind and the reason.
        tls: what this end shows on TCP sockets; None without TLS.
    """

    def __init__(self, refused: Refuse, tls: Tls | None) -> None:
        self._refused = refused
        self._tls = tls
        self._expected: dict[bytes, tuple[SocketTokens, Take, bytes]] = {}
        self._listening: list[socket.socket] = []
        self._closed = False
        self._setups: dict[asyncio.Task[bool], None] = {}  # of accepted sockets, the oldest first

    def listen(self, kinds: Sequence[str], host: str) -> list[str]:
        """Listen on a socket of each kind, and return their addresses. A kind that the system does not give is left out."""
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
            tokens: tokens of the socket.
            take: gets the socket.
            certificate: fingerprint of the certificate that the dialer has shown for the connection. Under TLS it must show
                the same one again.
        """
        self._expected[tokens.name] = (tokens, take, certificate)

    def forget(self, tokens: SocketTokens) -> None:
        """Stop expecting the socket of these tokens."""
        self._expected.pop(tokens.name, None)

    async def close(self) -> None:
        """Stop listening, and close the sockets that have not proven their session."""
        self._closed = True
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        setups = [*self._setups]
        for setup in setups:
            setup.cancel()
        await asyncio.gather(*setups, return_exceptions=True)

    def _watch(self, listening: socket.socket, kind: str) -> None:
        if not self._closed:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening, kind)

    def _accept(self, listening: socket.socket, kind: str) -> None:
        """Accept the next socket. This is no coroutine, because one that is cancelled may lose a socket that was accepted."""
        loop = asyncio.get_running_loop()
        try:
            accepted = PlainSocket.of(listening.accept()[0])
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # its dialer has closed it
        except OSError:
            loop.remove_reader(listening)
            loop.call_later(PAUSE_SECONDS, self._watch, listening, kind)
            return
        setup = loop.create_task(self._set_up(accepted, kind))
        self._setups[setup] = None
        setup.add_done_callback(partial(self._set_up_ended, accepted))
        if len(self._setups) > MOST_UNPROVEN:
            oldest = next(iter(self._setups))
            del self._setups[oldest]  # at once: more sockets may be accepted before its task ends
            oldest.cancel()

    def _set_up_ended(self, accepted: PlainSocket, setup: asyncio.Task[bool]) -> None:
        self._setups.pop(setup, None)
        if setup.cancelled() or not setup.result():  # here and not in the task, which may never have begun
            accepted.close()

    async def _set_up(self, accepted: PlainSocket, kind: str) -> bool:
        """Give an accepted socket to the session to which it belongs; return False if there is none."""
        try:
            sockets.prepare(accepted)
            secured: StreamSocket = accepted
            if kind != "unix" and self._tls is not None:
                secured = TlsSocket(accepted, self._tls, None)
            take = await within(HANDSHAKE_SECONDS, self._check(secured))
        except Exception as error:
            # If sockets are expected, one that was closed may be that of a worker that has ended: it is not refused.
            if not (isinstance(error, ConnectionError) and self._expected):
                self._refused(f"{kind} socket", "it opened a socket that belongs to no connection")
            return False
        take(secured, kind)
        return True

    async def _check(self, accepted: StreamSocket) -> Take:
        shown = await accepted.handshake()
        proof = await _read_exactly(accepted, SOCKET_NAME_BYTES + SOCKET_TOKEN_BYTES)
        tokens, take, certificate = self._expected[proof[:SOCKET_NAME_BYTES]]
        if shown is not None and shown != certificate:
            raise PermissionError("it shows another certificate than for the connection")
        if not hmac.compare_digest(proof[SOCKET_NAME_BYTES:], tokens.dialer):
            raise PermissionError("its token is wrong")
        self.forget(tokens)
        await accepted.send_all(tokens.acceptor)
        return take


async def open_socket(addresses: Sequence[str], tokens: SocketTokens, tls: Tls | None, name: str) -> tuple[Any, str]:
    """Open a socket to a peer, let both ends prove to which session it belongs, and return it with its kind.

    Args:
        addresses: where the peer listens, in the order in which they are tried.
        tokens: tokens of the socket.
        tls: what this end shows on a TCP socket; None without TLS.
        name: name that the certificate of the other end must then carry.

    Raises:
        OSError: no address works; the message says why.
    """
    problems = []
    for address in addresses:
        try:
            kind = address.partition("://")[0]
            opening = _open(address, tokens, tls if kind == "tcp" else None, name)
            return await within(HANDSHAKE_SECONDS, opening, _close), kind
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            problems.append(f"{address}: {error or type(error).__name__}")
    raise OSError("; ".join(problems) or "the peer offers none")


async def _open(address: str, tokens: SocketTokens, tls: Tls | None, name: str) -> StreamSocket:
    made, target = sockets.endpoint(address)
    secured: StreamSocket = made
    with ExitStack() as undo:
        undo.callback(made.close)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(made, target)
        sockets.prepare(made)
        if tls is not None:
            secured = TlsSocket(made, tls, name)
        await secured.handshake()
        await secured.send_all(tokens.name + tokens.dialer)
        if not hmac.compare_digest(await _read_exactly(secured, SOCKET_TOKEN_BYTES), tokens.acceptor):
            raise PermissionError("its token is wrong")
        undo.pop_all()
    return secured


def _close(opened: StreamSocket) -> None:
    opened.close()


async def _read_exactly(source: StreamSocket, size: int) -> bytes:
    """Read exactly ``size`` bytes and return them."""
    data = b""
    while len(data) < size:
        if not (piece := await source.receive(size - len(data))):
            raise ConnectionResetError("it hung up")
        data += piece
    return data
