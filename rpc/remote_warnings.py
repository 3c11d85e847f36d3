"""Warnings of functions that run for other workers: what is shown at the callee is shown at the caller, too.

They travel with the answer, and are issued again before the call's future completes. So the caller's filters decide what
becomes of them: one that makes errors of warnings makes errors of these calls.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from .messages import Incoming, Interceptor
from .peers import Peers
from .serving import WARNINGS, call_variable

MOST = 100  # of one call
LONGEST = 10_000  # characters of one


class RemoteWarnings(Interceptor):
    """Issues the warnings of answers to one agent's calls. Filters and hooks of users run for that."""

    number = WARNINGS

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def opening(self, message: Incoming) -> None:
        """Issue the warnings that came with an answer."""
        worker = self._peers.at(message.sender).info.name
        for module, name, text, file, line in json.loads(message.extras[WARNINGS]):
            warnings.warn_explicit(f"{text} (on worker {worker!r})", _category(module, name), file, line)


def collect_warnings() -> None:
    """Have what is shown from now on kept for the callers, in this process, also where it is shown in another way."""
    if not isinstance(warnings.showwarning, _Showing):
        warnings.showwarning = _Showing(warnings.showwarning)  # type: ignore[assignment]


class _Showing:
    """Shows a warning as before, and keeps it with the call that runs here, if one does."""

    def __init__(self, show: Callable[..., None]) -> None:
        self._show = show

    def __call__(self, message: Any, category: type[Warning], filename: str, lineno: int, *more: Any) -> None:
        if (call := call_variable.get()) is not None and len(call.warnings) < MOST:
            row = (category.__module__, category.__qualname__, str(message)[:LONGEST], filename, lineno)
            call.warnings = (*call.warnings, row)
        self._show(message, category, filename, lineno, *more)


def _category(module: str, name: str) -> type[Warning]:
    """Return the class of a warning, if this process has it, else ``UserWarning``."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else UserWarning
