"""``StreamSocket``: a connected socket for frames, plain (``PlainSocket``) or under TLS (``TlsSocket``), with one interface."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...core.futures import opens, shield

TIMEVAL = struct.Struct("ll")  # seconds and microseconds, of the system's time-outs


class StreamSocket(ABC):
    """Connected stream socket that does not block, unless ``let_wait``. One thread may read while another one writes.

    Attributes:
        encrypted: its bytes pass through the memory of TLS, which may hold some of them back.
        holds_back: True while there are bytes that were taken from the system and not yet returned by ``recv_into``.
    """

    encrypted = False
    holds_back = False
    full = False  # it is asked for room by writing

    # -- before the stream begins, on the loop

    async def handshake(self) -> bytes | None:
        """Carry out the handshake, and return the fingerprint of the other end's certificate; ``None`` without TLS.

        Raises:
            OSError: the handshake failed.
        """
        return None

    @abstractmethod
    async def send_all(self, data: bytes, /) -> None:
        """Send a few bytes."""

    @abstractmethod
    async def receive(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none if the other end has closed."""

    # -- the stream: methods of ``socket.socket``

    @property
    @abstractmethod
    def family(self) -> int:
        """Return the address family: only a Unix socket carries descriptors."""

    @abstractmethod
    def fileno(self) -> int:
        """Return the descriptor."""

    @abstractmethod
    def recv_into(self, buffer: Any, /) -> int:
        """Read into ``buffer`` and return the number of bytes; 0 if the other end has ended its side.

        Raises:
            BlockingIOError: there is nothing to read.
        """

    def recv_whole(self, buffer: Any, /) -> int:
        """Read as ``recv_into`` does; after ``let_wait`` until ``buffer`` is full, the pause was too long, or the end."""
        return self.recv_into(buffer)

    @abstractmethod
    def recvmsg(self, size: int, space: int, flags: int, /) -> tuple[bytes, list[Any], int, Any]:
        """Read bytes and the descriptors that came with them; return them as ``socket.recvmsg`` does.

        Args:
            size: most bytes.
            space: bytes for descriptors.
            flags: those of the system.
        """

    @abstractmethod
    def send(self, data: Any, /) -> int:
        """Send as much as there is room for, and return the number of bytes.

        Raises:
            BlockingIOError: there is no room.
        """

    @abstractmethod
    def sendmsg(self, parts: Sequence[Any], ancillary: Sequence[Any] = (), flags: int = 0, /) -> int:
        """Send parts, as ``send`` does, and descriptors; return the number of bytes of the parts that were sent.

        Args:
            parts: bytes-like objects.
            ancillary: descriptors, for a Unix socket.
            flags: those of the system.
        """

    @abstractmethod
    def shutdown(self, how: int, /) -> None:
        """End this side of the socket, or both sides."""

    @abstractmethod
    def close(self) -> None:
        """Close the socket."""

    def only_held_back(self) -> AbstractContextManager[None]:
        """Let ``recv_into`` return only bytes that it holds back, then raise ``BlockingIOError``. For the reading thread."""
        return nullcontext()  # a plain socket never holds back any, and its reader does not ask

    def let_wait(self, seconds: float, /) -> bool:
        """Let reads, and writes without the flag ``MSG_DONTWAIT``, wait in the system; return False if they cannot.

        A thread then needs the interpreter once for many bytes.

        Args:
            seconds: the longest wait of each.
        """
        return False

    # -- room to write

    @opens
    def wait_for_room(self, seconds: float) -> None:
        """Block until the socket has room, for ``seconds`` at most."""
        if shield.noted:
            shield.deliver()
        poll = select.poll()
        try:
            poll.register(self.fileno(), select.POLLOUT)
        except ValueError:
            return  # it was closed at this moment
        poll.poll(seconds * 1000)

    def call_when_room(self, loop: asyncio.AbstractEventLoop, action: Callable[[], object]) -> None:
        """Call an action when the socket has room, until ``forget_room``. On the loop."""
        loop.add_writer(self.fileno(), action)

    def forget_room(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch for room no longer. On the loop."""
        loop.remove_writer(self.fileno())


class PlainSocket(socket.socket, StreamSocket):
    """Stream socket without TLS: its reads and writes are calls to the system, without a call of Python code."""

    @classmethod
    def of(cls, connected: socket.socket) -> PlainSocket:
        """Take a socket over, which is closed for other users; it does not block from here on."""
        taken = cls(connected.family, connected.type, connected.proto, connected.detach())
        taken.setblocking(False)
        return taken

    def let_wait(self, seconds: float, /) -> bool:
        limit = TIMEVAL.pack(int(seconds), int(seconds % 1 * 1e6))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self.setsockopt(socket.SOL_SOCKET, option, limit)
        self.setblocking(True)
        return True

    def recv_whole(self, buffer: Any, /) -> int:
        return self.recv_into(buffer, 0, socket.MSG_WAITALL)

    async def send_all(self, data: bytes, /) -> None:
        await asyncio.get_running_loop().sock_sendall(self, data)

    async def receive(self, size: int, /) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self, size)
