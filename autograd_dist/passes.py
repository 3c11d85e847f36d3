"""Backward passes of one context on one worker: any number at a time, also from one root.

A worker keeps its part of a pass until it knows that the pass is over. Each pass names the oldest pass of its root that was
not over when it began, so parts of earlier passes can be dropped. No message is needed for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from ..base.errors import AutogradError
from .backward_pass import BackwardPass


class PassId(NamedTuple):
    """Id of a pass: number of its root, its number at the root, and number of the root's oldest pass that was not over then."""

    root: int
    number: int
    oldest: int


class Passes:
    """Parts of a context's passes on one worker.

    Args:
        worker: number of the worker.
    """

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._parts: dict[PassId, BackwardPass] = {}
        self._oldest: dict[int, int] = {}  # by root: number of its oldest pass that may not be over
        self._last = 0  # number of the latest pass of this worker
        self._lock = threading.Lock()

    def begin(self, make: Callable[[PassId], BackwardPass]) -> BackwardPass:
        """Return a new pass whose root is this worker."""
        with self._lock:
            self._last += 1
            oldest = min(self._going_on(), default=self._last) if self._parts else self._last
            pass_id = PassId(self._worker, self._last, oldest)
            over = self._forget(pass_id)
            part = self._parts[pass_id] = make(pass_id)
        del over  # here, so that their graphs are freed without the lock
        return part

    def join(self, pass_id: PassId, make: Callable[[PassId], BackwardPass]) -> BackwardPass:
        """Return this worker's part of a pass; make it if the pass is new here.

        Raises:
            AutogradError: the pass is over.
        """
        over: list[BackwardPass] = []
        with self._lock:
            part = self._parts.get(pass_id)
            if part is None:
                if pass_id.root == self._worker or pass_id.number < self._oldest.get(pass_id.root, 0):
                    raise AutogradError(
                        f"gradients came for backward {pass_id.number} of worker {pass_id.root}, which is over"
                    )
                over = self._forget(pass_id)
                part = self._parts[pass_id] = make(pass_id)
        del over
        return part

    def parts(self) -> list[tuple[PassId, BackwardPass]]:
        """Return the parts that are kept, in the order in which they began here."""
        with self._lock:
            return list(self._parts.items())

    def going_on(self) -> int:
        """Return how many passes that began on this worker are not over."""
        with self._lock:
            return len(self._going_on())

    def _going_on(self) -> list[int]:
        return [
            each.number for each, part in self._parts.items() if each.root == self._worker and not part.finished.done()
        ]

    def _forget(self, fresh: PassId) -> list[BackwardPass]:
        # lock held. A pass that began earlier may arrive later, and name an older pass.
        oldest = self._oldest[fresh.root] = max(fresh.oldest, self._oldest.get(fresh.root, 0))
        if not self._parts:
            return []
        over = [each for each in self._parts if each.root == fresh.root and each.number < oldest]
        return [self._parts.pop(each) for each in over]
