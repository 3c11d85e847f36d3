"""Work that is due, done by one thread at a time.

The thread that has added work does it, unless another thread is doing work already: then that thread does this, too. So work
that makes more work due is a loop and no recursion. On the in-process lane, for example, a message makes room for the next
one before ``send`` returns.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

Work = Callable[[], bool | None]  # returns True if it is still to be done


class DueWork:
    """Queue of work. For any thread; no lock is held while work is done.

    Attributes:
        stopped: while True, nothing is done.
    """

    def __init__(self) -> None:
        self._items: deque[Work] = deque()
        self._doing = threading.Lock()  # held by the thread that does work
        self.stopped = False

    def add(self, *items: Work) -> None:
        """Add work; the next ``run`` does it."""
        self._items.extend(items)

    def run(self) -> None:
        """Do the work, unless another thread is doing it."""
        # After a thread has released the lock it looks again, so that items which came meanwhile are not forgotten.
        while self._items and not self.stopped and self._doing.acquire(blocking=False):
            try:
                while self._items and not self.stopped:
                    work = self._items.popleft()
                    if work() is True:
                        self._items.appendleft(work)
            finally:
                self._doing.release()
