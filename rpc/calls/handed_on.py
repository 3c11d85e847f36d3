"""Results of requests that are served now, handed on to other requests that wait for them as promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from ...base.errors import RpcError
from ...core.futures import Future, complete_once, copy_error

CallKey = tuple[int, int]  # number of the caller, id of the call there


class ServedRequest(Protocol):
    """Request that is served.

    Attributes:
        cancelled: whether its caller has given up, or is lost.
    """

    cancelled: bool


class HandedOn:
    """Results of requests under way that other requests wait for.

    Args:
        serving: the requests that were accepted and not answered.
        run_later: runs a task that may call user code.

    Attributes:
        wanted: the futures of the results, by request.
    """

    def __init__(
        self, serving: Mapping[CallKey, ServedRequest], run_later: Callable[[Callable[[], None]], object]
    ) -> None:
        self.wanted: dict[CallKey, Future[Any]] = {}
        self._serving = serving
        self._run_later = run_later

    def result_of(self, key: CallKey) -> Future[Any] | None:
        """Return a future of the result of a request that is served now, for another request; ``None`` if there is none.

        It completes when the request is answered, and fails with an ``RpcError`` if its result cannot be had here. That of a
        request that was cancelled cannot, although its function may still run.
        """
        if not self._comes(key):
            return None
        wanted = self.wanted.setdefault(key, Future())
        if not self._comes(key):  # it was answered or cancelled meanwhile: before the result was wanted, or after
            self.ended(key)
        return wanted

    def _comes(self, key: CallKey) -> bool:
        return (served := self._serving.get(key)) is not None and not served.cancelled

    def answered(self, key: CallKey, value: Any, error: BaseException | None) -> None:
        """Give the outcome of a request to the requests that wait for it.

        Args:
            key: of the request.
            value: its result, if there is no error.
            error: its exception.
        """
        if (wanted := self.wanted.pop(key, None)) is not None:
            complete_once(wanted, value, error and copy_error(error))

    def ended(self, key: CallKey, why: str = "its result was not handed on") -> None:
        """Fail what waits for the result of a request that has ended, if it was not given."""
        self.answered(key, None, RpcError(why))

    def cancelled(self, key: CallKey) -> None:
        """Fail it soon, because the caller of the request has given up. In a reader's thread."""
        if key in self.wanted:
            self._run_later(partial(self.ended, key, "its call was cancelled"))
