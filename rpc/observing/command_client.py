"""Connection of a command that asks a worker, on the I/O loop: what it has sent, and whether it is being answered."""

from __future__ import annotations

import socket
import time

MOST_REQUEST_BYTES = 1 << 20


class CommandClient:
    """Client of a worker's socket for commands.

    Args:
        connection: its connection, which does not block.

    Attributes:
        busy: a thread answers it; the loop does not read from it meanwhile.
        heard: when it last sent something, in monotonic seconds.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.busy = False
        self.heard = time.monotonic()
        self._data = bytearray()

    def receive(self) -> bool:
        """Take what has come; return whether more may come.

        Raises:
            OSError: it has gone.
            ValueError: it ended in the middle of a request.
        """
        try:
            part = self.connection.recv(1 << 16)
        except BlockingIOError:
            return True
        if not part and self._data:
            raise ValueError(f"a request is one line of at most {MOST_REQUEST_BYTES:,} bytes")
        self._data += part
        self.heard = time.monotonic()
        return bool(part)

    def next_line(self) -> bytes | None:
        """Return the next request; None if it has not come whole.

        Raises:
            ValueError: it is too long.
        """
        end = self._data.find(b"\n")
        if (end if end >= 0 else len(self._data)) > MOST_REQUEST_BYTES:
            raise ValueError(f"a request is one line of at most {MOST_REQUEST_BYTES:,} bytes")
        if end < 0:
            return None
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        return line
