"""Work that is due, done by one thread at a time.

A thread that has added some does it, unless another is at it already: that one does this, too. So work that makes more work
due is a loop and no recursion. In-process, say, a message makes room for the next one before ``send`` returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any


class DueWork:
    """Queue of work. Any thread; no lock is held while something is done.

    An item stays in the queue until it is done. If that fails (is interrupted by Ctrl-C, say), it is done once more.

    Args:
        do: does one item; returns False if that is still to be done.

    Attributes:
        stopped: nothing is done for now.
    """

    def __init__(self, do: Callable[[Any], bool]) -> None:
        self._do = do
        self._items: deque[Any] = deque()
        self._doing = False  # a thread is at it
        self.stopped = False

    def add(self, *items: Any) -> None:
        """Add items, to be done when somebody calls ``run``."""
        self._items.extend(items)

    def run(self) -> None:
        """Do what is due, unless another thread does."""
        # The thread that is at it looks again after it has said that it is not: what comes meanwhile is not forgotten.
        while self._items and not self.stopped:
            if not self._doing:
                self._doing = True  # no other thread and no signal handler runs between the look and this
                try:
                    self._do_all()
                finally:
                    self._doing = False
            else:
                return

    def _do_all(self) -> None:
        while self._items and not self.stopped:
            self._do_first()

    def _do_first(self) -> None:
        item, done = self._items[0], True
        try:
            try:
                done = self._do(item)
            except BaseException:  # Ctrl-C, say
                done = self._do(item)
                raise
        finally:
            if done:
                self._items.popleft()
