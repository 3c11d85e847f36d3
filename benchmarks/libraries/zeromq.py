"""ZeroMQ over Unix sockets: a pickle and its buffers as the parts of one message, none of them copied by ZeroMQ's caller."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import zmq

from .base import Place
from .connected import Connected, serve_in_thread

COPIED_BELOW = 64 * 1024  # as ZeroMQ's own threshold: a small copy costs less than to track the buffer


def make(transport: str) -> ZeroMQ:
    """Return the library."""
    return ZeroMQ()


class ZeroMQ(Connected):
    """ZeroMQ, each worker in a process with one thread that answers in the order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = {"pyzmq": zmq.pyzmq_version(), "libzmq": zmq.zmq_version()}
        self._context = zmq.Context()

    def join(self, rank: int, world: int, place: Place) -> None:
        self._folder = place.folder
        router = self._context.socket(zmq.ROUTER)
        router.hwm = 0  # no limit: a router drops what goes beyond it
        router.bind(self._address(rank))
        serve_in_thread(lambda: serve(router))

    def connect(self, rank: int) -> Any:
        dealer = self._context.socket(zmq.DEALER)
        dealer.hwm = 0
        dealer.connect(self._address(rank))
        return dealer

    def call(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        dealer = self.connection(rank)
        send(dealer, [], (function, args))
        return receive(dealer.recv_multipart(copy=False))

    def start_call(self, rank: int, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        dealer = self.connection(rank)
        send(dealer, [], (function, args))
        return lambda: receive(dealer.recv_multipart(copy=False))

    def _address(self, rank: int) -> str:
        return f"ipc://{self._folder}/zmq{rank}"


def serve(router: Any) -> None:
    """Answer until the process ends."""
    while True:
        sender, *parts = router.recv_multipart(copy=False)
        function, args = receive(parts)
        send(router, [sender], function(*args))


def send(socket: Any, address: list[Any], value: Any) -> None:
    """Send a value: its pickle, then its buffers."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    parts = [*address, data, *(buffer.raw() for buffer in buffers)]
    socket.send_multipart(parts, copy=all(len(part) < COPIED_BELOW for part in parts[len(address) :]))


def receive(parts: list[Any]) -> Any:
    """Return the value of a message."""
    data, *buffers = [part.buffer for part in parts]
    return pickle.loads(data, buffers=buffers)
