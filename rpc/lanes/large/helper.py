"""``HelperThread``: runs actions for the main thread, where signal handlers run, in the middle of an action too."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ....core.futures import Waiter
from ..ioloop import call_on_loop

logger = logging.getLogger("telegrad.rpc")
LINGER_SECONDS = 1.0  # the thread waits so long for the next action
LOOK_SECONDS = 0.05  # how often the main thread looks whether it need not wait any more


class HelperThread:
    """Thread that begins with the first action, and ends when there has been none for a while.

    Args:
        loop: starts it: ``Thread.start`` must not be interrupted.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._actions: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._runs = False

    def do(self, action: Callable[[], object], needless: Callable[[], bool]) -> None:
        """Have the thread run an action, and wait until it has ended; an exception is logged.

        Args:
            action: what to run.
            needless: whether there is no need to wait any more; asked now and then.
        """
        done = Waiter()  # not an Event, whose lock an interrupt may leave taken, as that of ``Thread.start``
        self._actions.put(lambda: _run_for(done, action))
        while not needless():
            # Looked at after the action is there: a thread that ends looks for actions after it has said so.
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
        try:
            threading.Thread(target=self._run, name="telegrad-bulk", daemon=True).start()
        except RuntimeError:  # the system has no thread to give, which the next look tries again
            self._runs = False
            logger.warning("no thread can be started to write a large frame; it is tried again", exc_info=True)

    def _run(self) -> None:
        while True:
            try:
                action = self._actions.get(timeout=LINGER_SECONDS)
            except Empty:
                self._runs = False
                if self._actions.empty():
                    return  # and say nothing any more: another thread may have been started since
                self._runs = True
                continue
            if action is None:
                self._runs = False
                self.close()  # also for another one, if two were started
                return
            action()
            del action  # and what it holds, while this waits


def _run_for(waiter: Waiter, action: Callable[[], object]) -> None:
    try:
        action()
    except Exception:
        logger.exception("a large frame could not be written")
    finally:
        waiter.release()
