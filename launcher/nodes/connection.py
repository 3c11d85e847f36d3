"""Connection between two launchers: TLS, and messages of JSON behind their length, as frames are on a worker's socket."""

import json
import select
import socket
import ssl
import threading
import time
from typing import Any

from ...rpc.extend import FRAME_LENGTH
from ..errors import NodeError

MOST_MESSAGE_BYTES = 1 << 20
KEEPALIVE = {
    socket.TCP_KEEPIDLE: 15,
    socket.TCP_KEEPINTVL: 15,
    socket.TCP_KEEPCNT: 4,
}  # a pulled cable is an end after 75 s
TLS_RECORD_BYTES = 1 << 14


class NodeConnection:
    """Connection whose messages may be sent by several threads, and read by one at the same time.

    An SSL object is not safe for that (OpenSSL, ``SSL_read`` beside ``SSL_write``): each call to it holds a lock and does not
    block, and waiting is done outside of the lock.

    Args:
        stream: a connected TCP socket in a TLS context; the handshake may still be to come.
    """

    def __init__(self, stream: ssl.SSLSocket) -> None:
        self.stream = stream
        stream.setblocking(False)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            stream.setsockopt(socket.IPPROTO_TCP, option, value)
        self._tls_lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._arrived = bytearray()

    def handshake(self, deadline: float) -> None:
        """Carry out the TLS handshake.

        Raises:
            OSError: it failed, or took too long.
        """
        self._patiently(self.stream.do_handshake, deadline)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message.

        Raises:
            OSError: the connection is broken.
        """
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, content: bytes) -> None:
        """Send a message of bytes.

        Raises:
            OSError: the connection is broken.
        """
        left = memoryview(FRAME_LENGTH.pack(len(content)) + content)
        with self._send_lock:
            while left:
                piece = left[:TLS_RECORD_BYTES]
                left = left[self._patiently(lambda piece=piece: self.stream.send(piece), None) :]

    def receive(self, deadline: float | None = None) -> dict[str, Any]:
        """Return the next message.

        Args:
            deadline: monotonic seconds; None waits as long as the connection stands.

        Raises:
            OSError: the connection is broken, or the time is over (``TimeoutError``).
            NodeError: it is no message.
        """
        try:
            message = json.loads(self.receive_bytes(MOST_MESSAGE_BYTES, deadline))
        except ValueError as error:
            raise NodeError(
                "the other launcher sent no message; install the same version of telegrad on all nodes"
            ) from error
        if not isinstance(message, dict):
            raise NodeError(
                "the other launcher sent another kind of message; install the same version of telegrad on all nodes"
            )
        return message

    def receive_bytes(self, most: int, deadline: float | None = None) -> bytes:
        """Return the next message, of at most ``most`` bytes.

        Args:
            most: a longer one is refused before it is read.
            deadline: monotonic seconds; None waits as long as the connection stands.

        Raises:
            OSError: the connection is broken, or the time is over (``TimeoutError``).
        """
        (size,) = FRAME_LENGTH.unpack(self._take(FRAME_LENGTH.size, deadline))
        if size > most:
            raise ConnectionAbortedError(f"a message of {size} bytes was announced, at most {most} are allowed")
        return self._take(size, deadline)

    def close(self) -> None:
        """Close the connection; a thread that reads it gets an ``OSError``."""
        try:
            self.stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        with self._tls_lock:
            self.stream.close()

    def _take(self, size: int, deadline: float | None) -> bytes:
        while len(self._arrived) < size:
            data = self._patiently(lambda: self.stream.recv(1 << 16), deadline)
            if not data:
                raise ConnectionResetError("the other launcher closed the connection")
            self._arrived += data
        taken = bytes(self._arrived[:size])
        del self._arrived[:size]
        return taken

    def _patiently(self, action: Any, deadline: float | None) -> Any:
        while True:
            try:
                with self._tls_lock:
                    return action()
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, deadline)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, deadline)

    def _wait(self, event: int, deadline: float | None) -> None:
        poll = select.poll()
        poll.register(self.stream, event)
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        if not poll.poll(left and left * 1000) and deadline is not None and time.monotonic() >= deadline:
            raise TimeoutError("the other launcher did not answer in time")
