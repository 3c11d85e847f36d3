"""Waits for futures with a time-out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.futures import Future, complete_once, copy_error, copy_outcome, interrupts_protected, thread_role

if TYPE_CHECKING:
    from ...core.futures import Canceller
    from ..threads.timers import Timers
    from .dispatch import CallTable, PendingCall


class TimedWaits:
    """Waits of one agent for futures. A wait is in the table of calls, so that its time-out comes as that of a call.

    Args:
        table: of the calls under way.
        canceller: cancels a wait.
        timers: the agent's.
    """

    def __init__(self, table: CallTable, canceller: Canceller, timers: Timers) -> None:
        self._table = table
        self._canceller = canceller
        self._timers = timers

    def with_deadline(
        self, source: Future[Any], seconds: float, what: object, then: Callable[[float], Future[Any]] | None = None
    ) -> Future[Any]:
        """Return a future of the outcome of ``source``, or of ``then(seconds left)`` after it, with a time-out.

        After ``seconds`` (0: never) it fails with ``RpcTimeoutError``.

        Args:
            source: the future to wait for.
            seconds: the time-out; 0 for none.
            what: its text names the wait in errors; the text is made only for them.
            then: begins a second wait, with the seconds that are left.
        """
        if source.done() and then is None:
            return source
        call = self._table.new_call(0, seconds, -1, what)
        call.future.driver, call.future.canceller = source.driver, self._canceller
        if thread_role.inside and interrupts_protected():
            self._timers.soon(partial(self._await, call, source, then))
        else:
            self._await(call, source, then)
        return call.future

    def _await(self, call: PendingCall, source: Future[Any], then: Callable[[float], Future[Any]] | None) -> None:
        self._table.add(call)
        source.add_done_callback(lambda _: self._forward(call, source, then))

    def _forward(self, call: PendingCall, source: Future[Any], then: Callable[[float], Future[Any]] | None) -> None:
        if self._table.take(call.call_id) is None:
            return
        if (error := source.exception()) is not None:
            complete_once(call.future, error=copy_error(error))
            return
        if then is None:
            complete_once(call.future, source.value())
            return
        left = max(call.ends() - self._timers.program.now(), 1e-3) if call.timeout else 0.0
        try:
            then(left).add_done_callback(lambda future: copy_outcome(future, call.future))
        except Exception as problem:  # it could not begin, for example because the agent was closed at that moment
            complete_once(call.future, error=problem)
