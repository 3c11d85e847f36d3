"""``Saving``: when a callee saves a checkpoint: after so many calls, and when a caller asks for one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ...core.futures import Future
    from .applying import Applying

logger = logging.getLogger("telegrad.rpc")


class SavesSteps(Protocol):
    """Object that saves a checkpoint: a ``Checkpointer``."""

    def save(self, step: int) -> object:
        """Save; when this returns, the checkpoint is durable."""


class Saving:
    """Checkpoints of one callee, saved one after the other beside the calls.

    Args:
        applying: counts the calls.
        begin: begins to save the checkpoint of a step; its future completes when that is durable.
        every: how many calls there are between two checkpoints, if no caller asks for one earlier; ``None`` is any number.
    """

    def __init__(self, applying: Applying, begin: Callable[[int], Future[Any]], every: int | None) -> None:
        self._applying = applying
        self._begin = begin
        self._every = every
        self._lock = threading.Lock()
        self._asked = False
        self._saves = False
        self._tried = applying.calls.total  # when the last checkpoint was begun, which may have later calls, too

    def ask(self) -> None:
        """Save a checkpoint as soon as there is something new to save."""
        self._asked = True
        self.look()

    def look(self) -> None:
        """Begin to save if it is time."""
        with self._lock:
            total, durable = self._applying.calls.total, self._applying.calls.durable
            due = self._every is not None and total - self._tried >= self._every
            if self._saves or total == durable or not (self._asked or due):
                return
            self._saves, self._asked, self._tried = True, False, total
        self._begin(total).add_done_callback(partial(self._ended, total))

    def _ended(self, total: int, saved: Future[Any]) -> None:
        error = saved.exception()
        with self._lock:
            self._saves = False
        if error is None:
            self.look()  # what was asked for meanwhile
        else:
            logger.error("no checkpoint of %d exactly-once calls was saved; callers keep them", total, exc_info=error)
