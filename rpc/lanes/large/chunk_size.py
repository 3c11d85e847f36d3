"""``ChunkSize``: size of the chunks in which large frames leave: as many bytes as leave in a moment.

A chunk is one call to the system, after which its thread needs the interpreter again, for which it waits if another thread
computes. But a frame that is withdrawn is cut only after the chunk that leaves.
"""

from __future__ import annotations

LEAST_CHUNK_BYTES = 4 << 20
MOST_CHUNK_BYTES = 64 << 20
CHUNK_SECONDS = 0.1


class ChunkSize:
    """Size of the next chunk. The thread that writes uses it.

    Args:
        least, most: limits of it, in bytes.

    Attributes:
        value: the size in bytes.
    """

    def __init__(self, least: int = LEAST_CHUNK_BYTES, most: int = MOST_CHUNK_BYTES) -> None:
        self.value = self._least = least
        self._most = most

    def wrote(self, size: int, seconds: float) -> None:
        """Learn from a call that has written so many bytes.

        The size doubles at most: the first bytes after a pause only go into the system's memory, which takes no time. Writes of
        few bytes tell nothing.
        """
        if size < self._least:
            return
        fitting = int(size * CHUNK_SECONDS / seconds) if seconds > 0 else self._most
        self.value = max(self._least, min(fitting, 2 * self.value, self._most))
