"""Visits: connections that have not proven the token yet, few at a time.

When all places are taken, the oldest visit of the address that has the most is cut off: an honest launcher proves within
milliseconds, so a host that opens many connections, or dawdles, displaces its own.
"""

import socket
import threading
from collections import Counter
from contextlib import suppress


class Visits:
    """Visits under way. Any thread.

    Args:
        most: how many there may be at a time.
    """

    def __init__(self, most: int) -> None:
        self._places = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._addresses: dict[
            socket.socket, str
        ] = {}  # by duplicates of the sockets, which TLS replaces; the oldest first

    def reserve(self, seconds: float) -> bool:
        """Reserve a place for the next visit, for which an older one may have to go; return False if that takes longer."""
        if self._places.acquire(blocking=False):
            return True
        self._cut_off_one()
        return self._places.acquire(timeout=seconds)

    def give_up(self) -> None:
        """Give a reserved place back."""
        self._places.release()

    def begin(self, connection: socket.socket, address: str) -> socket.socket:
        """Begin a visit in the reserved place, and return what ``end`` needs.

        Raises:
            OSError: there are no descriptors.
        """
        handle = connection.dup()
        with self._lock:
            self._addresses[handle] = address
        return handle

    def end(self, handle: socket.socket) -> None:
        """End a visit: it has proven the token, or is over."""
        with self._lock:
            del self._addresses[handle]
        handle.close()
        self._places.release()

    def _cut_off_one(self) -> None:
        with self._lock:
            for crowd, _ in Counter(self._addresses.values()).most_common(1):
                oldest = next(handle for handle, address in self._addresses.items() if address == crowd)
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread ends it
