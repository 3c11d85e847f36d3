"""Pending handshakes: connections that have not proven the token yet, a limited number at a time.

When all places are taken, the oldest one of the address that has the most is closed. An honest launcher proves the token within
milliseconds. So a host that opens many connections, or sends nothing, displaces its own.
"""

import socket
import threading
from collections import Counter
from contextlib import suppress


class PendingHandshakes:
    """Connections during their handshake. Any thread.

    Args:
        most: how many there may be at a time.
    """

    def __init__(self, most: int) -> None:
        self._places = threading.Semaphore(most)
        self._lock = threading.Lock()
        # By duplicates of the sockets, because TLS replaces a socket; the oldest first.
        self._addresses: dict[socket.socket, str] = {}

    def reserve(self, seconds: float) -> bool:
        """Reserve a place for the next connection, for which an older one may be closed; return False if that takes longer."""
        if self._places.acquire(blocking=False):
            return True
        self._close_one()
        return self._places.acquire(timeout=seconds)

    def give_up(self) -> None:
        """Give a reserved place back."""
        self._places.release()

    def begin(self, connection: socket.socket, address: str) -> socket.socket:
        """Add a connection in the reserved place, and return the handle that ``end`` needs.

        Raises:
            OSError: there are no descriptors.
        """
        handle = connection.dup()
        with self._lock:
            self._addresses[handle] = address
        return handle

    def end(self, handle: socket.socket) -> None:
        """Remove a connection: it has proven the token, or is closed."""
        with self._lock:
            del self._addresses[handle]
        handle.close()
        self._places.release()

    def _close_one(self) -> None:
        with self._lock:
            for most, _ in Counter(self._addresses.values()).most_common(1):
                oldest = next(handle for handle, address in self._addresses.items() if address == most)
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread ends it
