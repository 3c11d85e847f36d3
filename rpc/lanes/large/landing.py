"""``Landing``: memory of a caller into which the one piece of an answer is received, without a copy between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..frame import new_memory

if TYPE_CHECKING:
    from ..stream_socket import StreamSocket

SPARE_BYTES = 1 << 20


class Landing:
    """Memory that a lane fills, until it is withdrawn. Any thread.

    Args:
        memory: writable bytes, for exactly one piece.
    """

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self._spare: memoryview | None = None

    def receive(self, source: StreamSocket, room: memoryview) -> int:
        """Receive from a socket once, and return the number of bytes.

        Args:
            source: the socket.
            room: the part of the memory that comes next. After ``withdraw`` the bytes go elsewhere, and are dropped.
        """
        with self._lock:
            return source.recv_whole(room if self._spare is None else self._spare[: len(room)])

    def withdraw(self) -> None:
        """Let nothing be written to the memory from now on. Waits for a read that goes on."""
        with self._lock:
            self._spare = self._spare or new_memory(SPARE_BYTES)


FindLanding = Callable[[memoryview, int], "Landing | None"]


def no_landing(*_: Any) -> Landing | None:
    """Return ``None``: the piece gets memory of the lane."""
    return None
