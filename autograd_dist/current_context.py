"""The autograd context in which this code runs. Apart, because every call looks at it, and few programs have contexts."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contexts import Context

current_context: ContextVar[Context | None] = ContextVar("telegrad_autograd_context", default=None)
