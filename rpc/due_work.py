"""Work that is due, done by one thread at a time.

The thread that has added work does it, unless another thread is doing work already: then that thread does this, too. So work
that makes more work due is a loop and no recursion. On the in-process lane, for example, a message makes room for the next
one before ``send`` returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any


class DueWork:
    """Queue of work. For any thread; no lock is held while an item is done.

    An item stays in the queue until it is done. If ``do`` raises (Ctrl-C may interrupt it), it is called once more.

    Args:
        do: does one item; returns False if the item is still to be done.

    Attributes:
        stopped: while True, nothing is done.
    """

    def __init__(self, do: Callable[[Any], bool]) -> None:
        self._do = do
        self._items: deque[Any] = deque()
        self._doing = False  # a thread is doing items
        self.stopped = False

    def add(self, *items: Any) -> None:
        """Add items; the next ``run`` does them."""
        self._items.extend(items)

    def run(self) -> None:
        """Do the items, unless another thread is doing them."""
        # After a thread has cleared ``_doing`` it looks again, so that items which came meanwhile are not forgotten.
        while self._items and not self.stopped:
            if not self._doing:
                self._doing = True  # no other thread and no signal handler runs between the check and this
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
            except BaseException:  # such as Ctrl-C
                done = self._do(item)
                raise
        finally:
            if done:
                self._items.popleft()
