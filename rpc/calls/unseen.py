"""Errors of calls that the caller never looks at: each is logged once, when its future is dropped or at shutdown.

These are errors of remote functions, time-outs and broken sessions. The loss of a worker is told once for the job, by the
launcher or by whatever fails first: a line for each call that was under way would hide the cause.

A future with an error keeps an ``UnseenError`` in the place of its value. Looking at the error ends the watch. So a call that
succeeds costs nothing, and a finalizer only leaves an action for the I/O loop.
"""

from __future__ import annotations

import itertools
import logging
from functools import partial
from typing import TYPE_CHECKING

from ..wire.failures import traceback_text

if TYPE_CHECKING:
    from ..threads.timers import Timers

logger = logging.getLogger("telegrad.rpc")
Told = tuple[object, BaseException]  # its text names the call; what the function raised


class UnseenErrors:
    """Errors of one agent's calls that nothing has looked at yet.

    Args:
        worker: the agent's name.
        timers: of the agent; its loop logs the errors of futures that were dropped.
    """

    def __init__(self, worker: str, timers: Timers) -> None:
        self._worker = worker
        self._timers = timers
        self._numbers = itertools.count()
        self._waiting: dict[int, Told] = {}  # no lock: each is popped once

    def watch(self, told: Told) -> UnseenError:
        """Return the watch of an error, for the future that gets it."""
        number = next(self._numbers)
        self._waiting[number] = told
        return UnseenError(self, number, told)

    def looked_at(self, number: int) -> bool:
        """End the watch of an error; return False if it has ended before."""
        return self._waiting.pop(number, None) is not None

    def dropped(self, number: int, told: Told) -> None:
        """Log an error that nothing can look at any more, soon. For a finalizer."""
        if self.looked_at(number):
            self._timers.soon(partial(self._log, told))

    def close(self) -> None:
        """Log all that nothing has looked at, because the agent closes."""
        for number, told in list(self._waiting.items()):
            if self.looked_at(number):
                self._log(told)

    def _log(self, told: Told) -> None:
        what, error = told
        text = traceback_text(error).rstrip()
        logger.warning("worker %r never looked at the error of %s:\n%s", self._worker, what, text)


class UnseenError:
    """Watch of one error, which its future keeps.

    Args:
        errors: those of the agent.
        number: its number there.
        told: what is logged of it.
    """

    __slots__ = ("_errors", "_number", "_told")

    def __init__(self, errors: UnseenErrors, number: int, told: Told) -> None:
        self._errors = errors
        self._number = number
        self._told = told

    def looked_at(self) -> None:
        """End the watch."""
        self._errors.looked_at(self._number)

    def passed_on(self) -> UnseenError:
        """End the watch, and return that of the same error in another future."""
        self.looked_at()
        return self._errors.watch(self._told)

    def __del__(self) -> None:
        try:
            self._errors.dropped(self._number, self._told)
        except AttributeError:
            pass  # the constructor was interrupted
