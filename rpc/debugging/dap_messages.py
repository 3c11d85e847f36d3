"""Messages of the Debug Adapter Protocol in a stream of bytes: a header with the length, then JSON.

https://microsoft.github.io/debug-adapter-protocol/overview#base-protocol
"""

from __future__ import annotations

import json
import re
from typing import Any

from ...base.errors import RpcError

MOST_HEADER_BYTES = 4096
MOST_DAP_BYTES = 16 << 20
END_OF_HEADER = b"\r\n\r\n"
LENGTH = re.compile(rb"(?:^|\r\n)Content-Length: *(\d{1,10})(?:\r\n|$)", re.IGNORECASE)


def dap_message(content: dict[str, Any]) -> bytes:
    """Return a message as bytes."""
    body = json.dumps(content).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def is_disconnect(message: bytes) -> bool:
    """Return whether a message asks to end the session."""
    if b"disconnect" not in message:  # few have it: the others are not parsed
        return False
    try:
        content = json.loads(message.partition(END_OF_HEADER)[2])
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("command") == "disconnect"


class WholeMessages:
    """Bytes of a stream, from which whole messages are taken, so that it can be ended between two of them."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> list[bytes]:
        """Add bytes, and return the messages that are whole now.

        Raises:
            RpcError: they are no messages, or one is too long.
        """
        self._data += data
        whole = []
        while (end := self._end_of_message()) is not None:
            whole.append(bytes(self._data[:end]))
            del self._data[:end]
        return whole

    def _end_of_message(self) -> int | None:
        end = self._data.find(END_OF_HEADER, 0, MOST_HEADER_BYTES)
        if end < 0:
            if len(self._data) >= MOST_HEADER_BYTES:
                raise RpcError("what came is no message of the Debug Adapter Protocol: its header has no end")
            return None
        found = LENGTH.search(self._data[:end])
        if found is None or int(found[1]) > MOST_DAP_BYTES:
            raise RpcError(
                f"what came is no message of the Debug Adapter Protocol of up to {MOST_DAP_BYTES:,} bytes: "
                f"its header is {bytes(self._data[: min(end, 100)])!r}"
            )
        end += len(END_OF_HEADER) + int(found[1])
        return end if end <= len(self._data) else None
