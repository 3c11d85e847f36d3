"""Work that is due, done by one thread at a time.

A thread that has added some does it, unless another is at it already: that one does this, too. So work that makes more work
due is a loop and no recursion. In-process, say, a message makes room for the next one before ``send`` returns.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class DueWork:
    """Queue of work. Any thread; no lock is held while something is done.

    Args:
        do: does one item.

    Attributes:
        stopped: nothing is done for now.
    """

    def __init__(self, do: Callable[[Any], object]) -> None:
        self._do = do
        self._items: deque[Any] = deque()
        self._doing = threading.Lock()  # held by the thread that is at it
        self.stopped = False

    def add(self, *items: Any) -> None:
        """Add items, to be done when somebody calls ``run``."""
        self._items.extend(items)

    def add_first(self, item: Any) -> None:
        """Add an item that is done before all others."""
        self._items.appendleft(item)

    def take_all(self) -> list[Any]:
        """Return what is not done, and leave it undone."""
        return list(iter(self._take, None))

    def run(self) -> None:
        """Do what is due, unless another thread does."""
        # The thread that is at it looks again after it has let go of the lock: what comes meanwhile is not forgotten.
        while self._items and not self.stopped and self._doing.acquire(blocking=False):
            try:
                while not self.stopped and (item := self._take()) is not None:
                    self._do(item)
            finally:
                self._doing.release()

    def _take(self) -> Any:
        try:
            return self._items.popleft()
        except IndexError:
            return None
