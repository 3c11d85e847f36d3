"""``TlsSocket``: a stream socket under TLS.

An SSL object must not be read and written at the same time (OpenSSL, ``SSL_read`` and ``SSL_write``), so a lock is held around
each call to it. It reads from memory and writes to memory, so that no call to it waits, and one system call can send many
records.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .stream_socket import StreamSocket

if TYPE_CHECKING:
    from ..security.tls import Tls

RECEIVE_BYTES = 256 * 1024
ENCRYPT_BYTES = 256 * 1024  # encrypted at a time, so that the peer can decrypt the first part meanwhile


class TlsSocket(StreamSocket):
    """TLS on a connected, non-blocking socket. From then on the socket belongs to this object.

    Args:
        plain: the socket.
        tls: what this end shows and trusts.
        name: name that the certificate of the other end must carry, if this end has dialed; None if it has accepted.
    """

    encrypted = True

    def __init__(self, plain: socket.socket, tls: Tls, name: str | None) -> None:
        self._plain = plain
        self._arrived, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = tls.server_context() if name is None else tls.client_context()
        self._tls = context.wrap_bio(self._arrived, self._leaving, server_side=name is None, server_hostname=name)
        # Held around calls to the next four methods and to _tls.
        self._lock = threading.Lock()
        self._encrypt, self._take = self._tls.write, self._leaving.read
        self._store = self._arrived.write
        self._decrypt: Any = self._tls.read  # with a buffer it returns the number of bytes
        self._transmit, self._receive = plain.send, plain.recv_into
        self._unsent: bytes | memoryview = b""  # ciphertext that the socket had no room for
        self._owed = 0  # bytes that are encrypted although the caller was told that they were not sent
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._asks_system = True
        self._over = False  # the other end has ended its side

    async def handshake(self) -> bytes:
        loop = asyncio.get_running_loop()
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._flush(loop)
                await self._fill(loop)
        await self._flush(loop)
        certificate = self._tls.getpeercert(binary_form=True)
        assert certificate is not None, "both ends must show one"
        return hashlib.sha256(certificate).digest()

    async def send_all(self, data: bytes, /) -> None:
        self._encrypt(data)
        await self._flush(asyncio.get_running_loop())

    async def receive(self, size: int, /) -> bytes:
        while True:
            try:
                return self._decrypt(size)
            except ssl.SSLWantReadError:
                await self._fill(asyncio.get_running_loop())
            except ssl.SSLZeroReturnError:
                return b""

    @property
    def family(self) -> int:
        return self._plain.family

    def fileno(self) -> int:
        return self._plain.fileno()

    def recv_into(self, buffer: Any, /) -> int:
        """Read into ``buffer`` and return the number of bytes; 0 if the other end has ended its side.

        Raises:
            BlockingIOError: there is nothing to read.
            ConnectionResetError: the socket ended without a message of the other end: it was cut.
        """
        if self.holds_back and (size := self._read_held_back(buffer)):
            return size
        if self._over:
            return 0
        if not self._asks_system:
            raise BlockingIOError
        # The system first: a read of TLS that finds nothing costs an exception. All is in this function, to save Python calls.
        while arrived := self._receive(self._buffer):
            size, room = 0, len(buffer)
            with self._lock:
                self._store(self._buffer[:arrived])
                try:
                    size = self._decrypt(room, buffer)
                except ssl.SSLWantReadError:
                    continue  # TLS has the first part of a record
                except ssl.SSLZeroReturnError:
                    pass
                if not 0 < size < room or self._arrived.pending:
                    size = self._decrypt_rest(buffer, size)
            return size
        raise ConnectionResetError("the connection was cut")

    def _read_held_back(self, buffer: Any) -> int:
        with self._lock:
            return self._decrypt_rest(buffer, 0)

    def _decrypt_rest(self, buffer: Any, size: int) -> int:
        """Read the records that have arrived into ``buffer``, after its first ``size`` bytes, and return the new size.

        Each record is one call to TLS.
        """
        # lock held
        arrived, room = self._arrived, len(buffer)
        try:
            while size < room:
                count = self._decrypt(room - size, memoryview(buffer)[size:])
                size += count
                self._over = not count
                if not (count and arrived.pending):  # TLS has no rest of a record either, because there was room for it
                    break
        except ssl.SSLWantReadError:
            pass  # TLS has the first part of the next record
        except ssl.SSLZeroReturnError:
            self._over = True
        self.holds_back = size == room and bool(arrived.pending or self._tls.pending())
        return size

    def recvmsg(self, size: int, *_: int) -> tuple[bytes, list[Any], int, None]:
        """Read at most ``size`` bytes, as ``recv_into`` does. There are no descriptors with them."""
        data = bytearray(size)
        return bytes(data[: self.recv_into(data)]), [], 0, None

    def sendmsg(self, parts: Sequence[Any], ancillary: Sequence[Any] = (), flags: int = 0, /) -> int:
        """Send as much as there is room for and return the number of bytes. The next call must begin with the other bytes.

        Args:
            parts: bytes-like objects.
            ancillary: must be empty, because TLS carries no descriptors.
            flags: ignored, because this never blocks.

        Raises:
            BlockingIOError: there is no room.
        """
        if self._unsent and not self._send_rest():
            raise BlockingIOError
        owed, self._owed = self._owed, 0
        fresh = _first_bytes(parts, owed + ENCRYPT_BYTES)
        if owed:
            fresh = memoryview(fresh)[owed:]
        return owed + self.send(fresh) if fresh else owed

    def send(self, data: Any, /) -> int:
        """Send one part, as ``sendmsg`` does; but this may return 0."""
        if self._unsent or self._owed or len(data) > ENCRYPT_BYTES:
            return self.sendmsg((data,))
        with self._lock:
            self._encrypt(data)
            self._unsent = records = self._take()
        try:
            sent = self._transmit(records)
        except BlockingIOError:
            sent = 0
        if sent == len(records):
            self._unsent = b""
            return len(data)
        self._unsent = memoryview(records)[sent:]
        self._owed = 1  # the caller calls again when there is room
        return len(data) - 1

    def shutdown(self, how: int, /) -> None:
        """End this side of the socket, after telling the other end; or end both sides at once."""
        if how == socket.SHUT_WR:
            self._say_end()
        self._plain.shutdown(how)

    def _say_end(self) -> None:
        with self._lock:
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                pass  # it also wants to read the end of the other side, which comes later
            self._unsent = bytes(self._unsent) + self._take()
        self._send_rest()

    def close(self) -> None:
        self._plain.close()

    @contextlib.contextmanager
    def only_held_back(self) -> Iterator[None]:
        self._asks_system = False
        try:
            yield
        finally:
            self._asks_system = True

    def _send_rest(self) -> bool:
        """Send ciphertext, and return whether all of it has left."""
        try:
            while rest := self._unsent:
                sent = self._transmit(rest)
                self._unsent = memoryview(rest)[sent:] if sent < len(rest) else b""
        except BlockingIOError:
            return False
        return True

    async def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._leaving.pending:
            await loop.sock_sendall(self._plain, self._take())

    async def _fill(self, loop: asyncio.AbstractEventLoop) -> None:
        data = await loop.sock_recv(self._plain, RECEIVE_BYTES)
        if not data:
            raise ConnectionResetError("it hung up during the TLS handshake")
        self._store(data)


def _first_bytes(parts: Sequence[Any], size: int) -> Any:
    """Return the first ``size`` bytes of some parts, without a copy if one part has them."""
    if len(parts) == 1 or len(parts[0]) >= size:
        return memoryview(parts[0])[:size]
    if sum(map(len, parts)) <= size:
        return b"".join(parts)
    pieces = []
    for part in parts:
        pieces.append(memoryview(part)[:size])
        size -= len(pieces[-1])
    return b"".join(pieces)
