"""``HelperThread``: runs actions for the main thread, in which a signal handler could run in the middle of an action."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ....core.futures import Waiter
from ..ioloop import call_on_loop
from .starter import ThreadStarter

logger = logging.getLogger("telegrad.rpc")
LINGER_SECONDS = 1.0  # the thread waits so long for the next action, and then ends
LOOK_SECONDS = 0.05  # the main thread checks so often whether it must still wait


class HelperThread:
    """Thread that begins with the first action, and ends when there has been none for a while.

    Args:
        loop: starts the thread, because ``Thread.start`` must not be interrupted.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._actions: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._runs = False
        self._starter = ThreadStarter("write a large frame")

    def do(self, action: Callable[[], object], needless: Callable[[], bool]) -> None:
        """Let the thread run an action, and wait until it has ended; an exception is logged.

        Args:
            action: what to run.
            needless: returns whether there is no need to wait any more; it is asked now and then.
        """
        done = Waiter()  # not an Event: an interrupt may leave its lock taken, as that of ``Thread.start``
        self._actions.put(lambda: _run_for(done, action))
        while not needless():
            # Checked after the action was queued: a thread that ends clears this first, and then looks for actions.
            if not self._runs:
                call_on_loop(self._loop, self._start)
            if done.sleep(LOOK_SECONDS):
                return

    def close(self) -> None:
        """End the thread, if there is one."""
        self._actions.put(None)

    def _start(self) -> None:
        if self._runs:
            return
        self._runs = True
        if not self._starter.start(self._run):  # the next look of ``do`` tries again
            self._runs = False

    def _run(self) -> None:
        while True:
            try:
                action = self._actions.get(timeout=LINGER_SECONDS)
            except Empty:
                self._runs = False
                if self._actions.empty():
                    return  # without a change of ``_runs``: another thread may have been started since
                self._runs = True
                continue
            if action is None:
                self._runs = False
                self.close()  # also ends another thread, if two were started
                return
            action()
            del action  # else it would be kept during the next wait


def _run_for(waiter: Waiter, action: Callable[[], object]) -> None:
    try:
        action()
    except Exception:
        logger.exception("a large frame could not be written")
    finally:
        waiter.release()
