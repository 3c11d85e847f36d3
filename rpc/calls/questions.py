"""Questions: requests about a worker itself, which are not the program's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...core.futures import Future
    from ..links.peer import Peer
    from ..threads.timers import Timers
    from .caller import Caller


class Questions:
    """Questions of one agent to other workers.

    Args:
        caller: sends them.
        timers: for their time-outs, which come also while the program's clock stands still.
    """

    def __init__(self, caller: Caller, timers: Timers) -> None:
        self._caller = caller
        self._timers = timers

    def ask(self, peer: Peer, method: int, body: Any, timeout: float, what: object) -> Future[Any]:
        """Send a question; the future holds the answer.

        Args:
            peer: the worker.
            method: number of the method, one of ``QUESTIONS``.
            body: the question's content.
            timeout: seconds.
            what: its text names the question in error messages.
        """
        call = self._caller.begin(peer, method, body, 0.0, what)
        timer = self._timers.after(timeout, self._caller.time_out, call, timeout)
        call.future.add_done_callback(lambda _: timer.cancel())
        return call.future
