"""Warnings of functions that run for other workers: a warning that is shown at the callee is also issued at the caller.

Warnings travel with the answer, and are issued again before the call's future completes. So the caller's filters decide what
happens: if a filter turns warnings into errors, the call fails.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..running import call_variable
from ..wire.messages import Incoming, Interceptor
from .replies import WARNINGS, WarningRow

if TYPE_CHECKING:
    from ..links.peers import Peers

MOST_WARNINGS = 100  # warnings of one call
LONGEST_WARNING = 10_000  # characters of one warning


class RemoteWarnings(Interceptor):
    """Issues the warnings that came with answers to one agent's calls. The user's warning filters and hooks run then."""

    number = WARNINGS

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def opening(self, message: Incoming) -> None:
        """Issue the warnings that came with an answer."""
        issue_warnings(json.loads(message.extras[WARNINGS]), self._peers.at(message.sender).info.name)


def issue_warnings(rows: Iterable[WarningRow], worker: str) -> None:
    """Issue the warnings of a worker here.

    Args:
        rows: the warnings.
        worker: its name.
    """
    for module, name, text, file, line in rows:
        warnings.warn_explicit(f"{text} (on worker {worker!r})", _category(module, name), file, line)


def collect_warnings() -> None:
    """Collect the warnings that this process shows from now on, for the callers; they are still shown here as before."""
    if not isinstance(warnings.showwarning, _Showing):
        warnings.showwarning = _Showing(warnings.showwarning)  # type: ignore[assignment]


class _Showing:
    """Shows a warning as before, and keeps it with the call that the current code runs for, if there is one."""

    def __init__(self, show: Callable[..., None]) -> None:
        self._show = show

    def __call__(self, message: Any, category: type[Warning], filename: str, lineno: int, *more: Any) -> None:
        if (call := call_variable.get()) is not None and len(call.warnings) < MOST_WARNINGS:
            row = (category.__module__, category.__qualname__, str(message)[:LONGEST_WARNING], filename, lineno)
            call.warnings = (*call.warnings, row)
        self._show(message, category, filename, lineno, *more)


def _category(module: str, name: str) -> type[Warning]:
    """Return the class of a warning; ``UserWarning`` if this process does not have the class."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else UserWarning
