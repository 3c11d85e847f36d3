"""``InUse``: the threads that save by one ``Checkpointer``, which is closed when they have ended."""

from __future__ import annotations

import threading


class InUse:
    """Context of what uses an object; any number of threads may be in it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until no thread is in the context."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count)
