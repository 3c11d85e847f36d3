"""``ReducedValue``: the one result of a call on a mesh whose results are reduced."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...core.futures import Future, attempt, complete_once
from ..wire.failures import rebuild_failure
from .reducing import CAT, finished, summed

if TYPE_CHECKING:
    from contextvars import Context

    from ..calls.codec import Codec
    from ..wire.bundle import Content


class ReducedValue:
    """Result of a call on a mesh with ``reduce=``; a worker that fails fails it.

    Args:
        fold: number of the reduction.
        count: number of workers.
        codec: opens results.
        run_later: runs a task that may call user code.

    Attributes:
        future: holds the result.
    """

    reduces = True

    def __init__(self, fold: int, count: int, codec: Codec, run_later: Callable[[Callable[[], None]], object]) -> None:
        self.future: Future[Any] = Future()
        self._fold = fold
        self._count = count
        self._codec = codec
        self._run_later = run_later
        self._lock = threading.Lock()
        self._failed = False

    @property
    def folds(self) -> bool:
        """Return whether results are added up on the way."""
        return self._fold != CAT

    def futures(self) -> Sequence[Future[Any]]:
        """Return the future of the result."""
        return [self.future]

    def add(self, results: Sequence[tuple[int, Content]]) -> None:
        """Look for an error among results, as they come; for the call."""
        failure = next((content for _, content in results if content.failed), None)
        if failure is None:
            return
        with self._lock:
            first, self._failed = not self._failed, True
        if first:
            self._run_later(partial(self._fail, failure))

    def _fail(self, failure: Content) -> None:
        value, problem = attempt(lambda: rebuild_failure(cast("Any", self._codec.open_content(failure))))
        canceller = self.future.canceller
        complete_once(self.future, error=value if problem is None else problem)
        if canceller is not None:
            canceller.cancel(self.future)  # the other results are not needed

    def complete(self, results: Sequence[tuple[int, Content]], context: Context) -> None:
        """Reduce all results, unless one is an error; for the call.

        Args:
            results: with their places in the mesh; of subtrees if they were added up.
            context: of the code that made the call.
        """
        self.add(results)
        if not self._failed:
            self._run_later(partial(context.copy().run, self._reduce, sorted(results, key=lambda each: each[0])))

    def _reduce(self, results: Sequence[tuple[int, Content]]) -> None:
        value, problem = attempt(lambda: self._reduced([self._codec.open_content(content) for _, content in results]))
        complete_once(self.future, value, problem)

    def _reduced(self, values: list[Any]) -> Any:
        return finished(self._fold, values if self._fold == CAT else summed(values), self._count)
