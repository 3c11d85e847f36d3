"""``ThreadStarter``: starts threads that a lane can wait for, because the system may refuse one under a limit of memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger("telegrad.rpc")


class ThreadStarter:
    """Starter of the threads that do one task, one thread after the other. It says once in a row that there is none.

    Args:
        task: names the task in the log: "read large frames".
    """

    def __init__(self, task: str) -> None:
        self._task = task
        self._told = False

    def start(self, run: Callable[[], object]) -> bool:
        """Start a thread that calls ``run``; return False if the system gives none."""
        try:
            threading.Thread(target=run, name="telegrad-bulk", daemon=True).start()
        except RuntimeError as error:
            if not self._told:
                self._told = True
                logger.warning("no thread can be started to %s (%s); it is tried again", self._task, error)
            return False
        self._told = False
        return True
