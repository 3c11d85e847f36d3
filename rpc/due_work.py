"""Work that is due, done by one thread at a time.

The thread that has added work does it, unless another thread is doing work already: then that thread does this, too. So work
that makes more work due is a loop and no recursion. On the in-process lane, for example, a message makes room for the next
one before ``send`` returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

Work = Callable[[], bool | None]  # returns True if it is still to be done


class DueWork:
    """Queue of work. For any thread; no lock is held while work is done.

    Work stays in the queue until it is done. If it raises (Ctrl-C may interrupt it), it is called once more.

    Attributes:
        stopped: while True, nothing is done.
    """

    def __init__(self) -> None:
        self._items: deque[Work] = deque()
        self._doing = False  # a thread is doing work
        self.stopped = False

    def add(self, *items: Work) -> None:
        """Add work; the next ``run`` does it."""
        self._items.extend(items)

    def run(self) -> None:
        """Do the work, unless another thread is doing it."""
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
        work, undone = self._items[0], None
        try:
            try:
                undone = work()
            except BaseException:  # such as Ctrl-C
                undone = work()
                raise
        finally:
            if undone is not True:
                self._items.popleft()
