"""``BlockingThread``: thread of a simulated process for code that blocks.

One of them runs at a time, in turns with the simulator's thread, so a run can be repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from ...core.futures import thread_role

FIRST_LOOK_SECONDS = 0.01
LONGEST_LOOK_SECONDS = 1.0


class ThreadEnded(BaseException):
    """Raised where the code blocks, when its process has ended."""


class BlockingThread:
    """Thread that runs in turns with the simulator's. It is its own blocker.

    Args:
        run: what it runs.

    Attributes:
        went_on: whether it did when it was last to go on.
        finished: whether it has ended.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._ended = self.finished = self.went_on = False
        self._acquire: Callable[[float], bool] | None = None
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    def go_on(self) -> bool:
        """Let it run until it blocks, or to its end; return whether there is more to do."""
        self.went_on = self._acquire is None or self._ended or self._acquire(0.0)
        if self.went_on:
            self._acquire = None
            self._mine.release()
            self._theirs.acquire()
        return not self.finished

    def end(self) -> None:
        """Raise ``ThreadEnded`` where it blocks."""
        self._ended = True
        while not self.finished:
            self.go_on()
        self._thread.join()

    def block(self, acquire: Callable[[float], bool], timeout: float) -> bool:
        """Let the simulator go on until ``acquire`` succeeds (``Blocker.block``); time-outs are those of calls."""
        if not self._ended:
            self._acquire = acquire
            self._theirs.release()
            self._mine.acquire()
        if self._ended:
            raise ThreadEnded
        return True

    def _main(self) -> None:
        thread_role.blocker = self
        self._mine.acquire()
        try:
            with suppress(ThreadEnded):
                self._run()
        finally:
            self.finished = True
            self._theirs.release()
