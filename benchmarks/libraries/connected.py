"""Calls over connections that each calling thread makes for itself: RPyC, ZeroMQ and bare sockets are fastest that way."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from .base import Library


class Connected(Library):
    """Library whose connections belong to the thread that makes them. Its arrays are NumPy's."""

    def __init__(self) -> None:
        self._own = threading.local()

    def array(self, size: int) -> Any:
        return np.ones(size, dtype=np.uint8)

    @abstractmethod
    def connect(self, rank: int) -> Any:
        """Return a new connection of this thread to that worker."""

    def connection(self, rank: int) -> Any:
        """Return this thread's connection to that worker."""
        try:
            connections: dict[int, Any] = self._own.connections
        except AttributeError:
            connections = self._own.connections = {}
        if rank not in connections:
            connections[rank] = self.connect(rank)
        return connections[rank]


def serve_in_thread(serve: Callable[[], None]) -> None:
    """Run a server until the process ends."""
    threading.Thread(target=serve, daemon=True).start()
