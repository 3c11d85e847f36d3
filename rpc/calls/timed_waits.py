"""Waits for futures with a time-out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.futures import Future, complete_once, copy_error, interrupts_protected, thread_role

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

    def with_deadline(self, source: Future[Any], seconds: float, what: object) -> Future[Any]:
        """Return a future of the outcome of ``source``, with a time-out.

        After ``seconds`` (0: never) it fails with ``RpcTimeoutError``.

        Args:
            source: the future to wait for.
            seconds: the time-out; 0 for none.
            what: its text names the wait in errors; the text is made only for them.
        """
        if source.done():
            return source
        call = self._table.new_call(0, seconds, -1, what)
        call.future.driver, call.future.canceller = source.driver, self._canceller
        if thread_role.inside and interrupts_protected():
            self._timers.soon(partial(self._await, call, source))
        else:
            self._await(call, source)
        return call.future

    def _await(self, call: PendingCall, source: Future[Any]) -> None:
        self._table.add(call)
        source.add_done_callback(lambda _: self._forward(call, source))

    def _forward(self, call: PendingCall, source: Future[Any]) -> None:
        if self._table.take(call.call_id) is None:
            return
        if (error := source.exception()) is not None:
            complete_once(call.future, error=copy_error(error))
        else:
            complete_once(call.future, source.value())
