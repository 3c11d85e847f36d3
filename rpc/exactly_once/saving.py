"""``Saving``: when a callee saves a checkpoint: after so many calls, and when a caller asks for one."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Protocol

from ...core.futures import attempt, in_thread

if TYPE_CHECKING:
    from .applying import Applying

logger = logging.getLogger("telegrad.rpc")


class SavesSteps(Protocol):
    """Object that saves a checkpoint: a ``Checkpointer``."""

    def save(self, step: int) -> object:
        """Save; when this returns, the checkpoint is durable."""


class Saving:
    """Checkpoints of one callee, saved one after the other in a thread beside the calls.

    Args:
        applying: counts the calls.
        checkpoints: saves one.
        every: how many calls there are between two checkpoints, if no caller asks for one earlier; ``None`` is any number.
    """

    def __init__(self, applying: Applying, checkpoints: SavesSteps, every: int | None) -> None:
        self._applying = applying
        self._checkpoints = checkpoints
        self._every = every
        self._lock = threading.Lock()
        self._asked = False
        self._saves = False
        self._saved = self._tried = applying.calls.total  # calls in the last checkpoint, and in the last that was begun

    def ask(self) -> None:
        """Save a checkpoint as soon as there is something new to save."""
        self._asked = True
        self.look()

    def look(self) -> None:
        """Begin to save if it is time."""
        with self._lock:
            total = self._applying.calls.total
            due = self._every is not None and total - self._tried >= self._every
            if self._saves or total == self._saved or not (self._asked or due):
                return
            self._saves, self._asked, self._tried = True, False, total
        in_thread(self._save, total)

    def _save(self, total: int) -> None:
        _, error = attempt(self._checkpoints.save, total)
        with self._lock:
            self._saves = False
            if error is None:
                self._saved = total
        if error is None:
            self.look()  # what was asked for meanwhile
        else:
            logger.error("no checkpoint of %d exactly-once calls was saved; callers keep them", total, exc_info=error)
