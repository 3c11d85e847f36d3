"""Refused joiners: their number by reason, and at most one line in the log in ten seconds."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("telegrad.rpc")
LOG_SECONDS = 10.0


class Refusals:
    """Joiners that an agent refused.

    Args:
        worker: name of the agent's worker, for the log.
        now: monotonic seconds.
    """

    def __init__(self, worker: str, now: Callable[[], float]) -> None:
        self._worker = worker
        self._now = now
        self._lock = threading.Lock()
        self._reasons: Counter[str] = Counter()
        self._log_from = 0.0  # time of the next line, at the earliest
        self._unlogged = 0

    def add(self, address: str, reason: str) -> None:
        """Count a joiner at ``address``. ``reason`` is one of a few fixed texts: nothing that a stranger sends is kept."""
        with self._lock:
            self._reasons[reason] += 1
            self._unlogged += 1
            now = self._now()
            if now < self._log_from:
                return
            count, self._unlogged, self._log_from = self._unlogged, 0, now + LOG_SECONDS
        others = f" (and {count - 1} others since the last such line)" if count > 1 else ""
        logger.warning("worker %r refused a joiner at %s: %s%s", self._worker, address, reason, others)

    def counts(self) -> dict[str, Any]:
        """Return the numbers of refused joiners, by reason; for ``debug_info``."""
        with self._lock:
            return dict(self._reasons)
