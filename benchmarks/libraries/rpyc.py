"""RPyC over Unix sockets. What a call carries is pickled: RPyC's own way to pass an array by value is slower."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import rpyc
from rpyc.core.stream import SocketStream
from rpyc.utils.factory import connect_stream
from rpyc.utils.server import ThreadedServer

from .base import Place
from .connected import Connected, serve_in_thread


def make(transport: str) -> RPyC:
    """Return the library."""
    return RPyC()


class Service(rpyc.Service):  # type: ignore[misc]
    """Service that calls functions."""

    def exposed_call(self, request: bytes) -> bytes:
        """Call a pickled function, and return its pickled result."""
        function, args = pickle.loads(request)
        return pickle.dumps(function(*args), protocol=5)


class RPyC(Connected):
    """RPyC, each worker in a process with a server that has a thread for each connection."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = {"rpyc": rpyc.version.__version__}

    def join(self, rank: int, world: int, place: Place) -> None:
        self._folder = place.folder
        # Listens from here on; `start` only accepts.
        serve_in_thread(ThreadedServer(Service, socket_path=self._path(rank)).start)

    def connect(self, rank: int) -> Any:
        return self._open(rank).root.call

    def call(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        return pickle.loads(self.connection(rank)(pickle.dumps((function, args), protocol=5)))

    def start_call(self, rank: int, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        answer = self._reading_connection(rank)(pickle.dumps((function, args), protocol=5))
        return lambda: pickle.loads(answer.value)

    @lru_cache  # noqa: B019  # one library for the process
    def _reading_connection(self, rank: int) -> Any:
        """Return a connection with a thread that reads: of many calls without one, both ends soon wait to send."""
        connection = self._open(rank)
        rpyc.BgServingThread(connection, serve_interval=0.1, sleep_interval=0.0)
        return rpyc.async_(connection.root.call)

    def _open(self, rank: int) -> Any:
        # RPyC's own function leaves a time-out of 3 s on the socket.
        made = socket.socket(socket.AF_UNIX)
        made.connect(self._path(rank))
        return connect_stream(SocketStream(made))

    def _path(self, rank: int) -> str:
        return str(self._folder / f"rpyc{rank}")
