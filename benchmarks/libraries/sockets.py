"""Bare sockets, the limit of a byte stream: a length, then the bytes; nothing is pickled and no function is named."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .base import Place, UnsupportedError
from .connected import Connected, serve_in_thread

LENGTH = struct.Struct("<Q")


def make(transport: str) -> Sockets:
    """Return sockets of that family."""
    return Sockets(transport)


class Sockets(Connected):
    """Worker with a thread for each connection, which sends back all it receives."""

    versions: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, transport: str) -> None:
        super().__init__()
        self._family = socket.AF_INET if transport == "tcp" else socket.AF_UNIX

    def join(self, rank: int, world: int, place: Place) -> None:
        self._folder = place.folder
        listener = socket.socket(self._family)
        if self._family == socket.AF_INET:
            listener.bind(("127.0.0.1", 0))
            (self._folder / f"port{rank}").write_text(str(listener.getsockname()[1]))
        else:
            listener.bind(str(self._folder / f"socket{rank}"))
        listener.listen(128)
        serve_in_thread(lambda: accept(listener))

    def connect(self, rank: int) -> Any:
        made = socket.socket(self._family)
        if self._family == socket.AF_INET:
            made.connect(("127.0.0.1", int((self._folder / f"port{rank}").read_text())))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            made.connect(str(self._folder / f"socket{rank}"))
        return made

    def call(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        if function.__name__ not in ("nothing", "echo"):
            raise UnsupportedError("it only sends bytes back")
        connection = self.connection(rank)
        send(connection, args[0] if args else b"")
        return receive(connection)


def accept(listener: socket.socket) -> None:
    """Serve every connection in a thread."""
    while True:
        connection = listener.accept()[0]
        if listener.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        serve_in_thread(lambda connection=connection: echo_all(connection))  # type: ignore[misc]


def echo_all(connection: socket.socket) -> None:
    """Send back what arrives, until the other end closes."""
    try:
        while True:
            send(connection, receive(connection))
    except ConnectionError:
        connection.close()


def send(connection: socket.socket, data: Any) -> None:
    """Send a length and as many bytes."""
    size = len(data)
    sent = connection.sendmsg([LENGTH.pack(size), data]) - LENGTH.size
    if sent < size:
        connection.sendall(memoryview(data)[sent:])


def receive(connection: socket.socket) -> Any:
    """Return the bytes of the next message, in memory of their own."""
    head = connection.recv(LENGTH.size, socket.MSG_WAITALL)
    if len(head) < LENGTH.size:
        raise ConnectionError("closed")
    (size,) = LENGTH.unpack(head)
    data = np.empty(size, dtype=np.uint8)
    view = memoryview(data.data)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise ConnectionError("closed within a message")
        view = view[count:]
    return data
