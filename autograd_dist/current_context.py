"""The autograd context in which this code runs. Apart, because every call looks at it, and few programs have contexts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contexts import Context

current_context: ContextVar[Context | None] = ContextVar("telegrad_autograd_context", default=None)
recorded_context: ContextVar[Context | None] = ContextVar("telegrad_recorded_context", default=None)
"""The context, while a function runs that is recorded as a part of its step."""


@contextmanager
def recorded_part() -> Iterator[None]:
    """Let functions be recorded as parts of the step in whose context they run."""
    context = current_context.get()
    token = recorded_context.set(context)
    try:
        yield
    finally:
        recorded_context.reset(token)
        if context is not None:
            context.recorded.pop(get_ident(), None)
