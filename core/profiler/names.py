"""Names of operations in profiles, which are PyTorch's: ``aten::add``."""

from __future__ import annotations

from typing import Any

from ..ops.table.registry import OPERATIONS

PREFIX = "aten::"


def event_name(operation: Any) -> str:
    """Return the name of an operation's event."""
    return f"{PREFIX}{operation.__name__}"


def operation_name(function: Any) -> str | None:
    """Return the name of an operation's event; ``None`` if the function is no operation."""
    name = getattr(function, "__name__", None)
    return event_name(function) if OPERATIONS.get(str(name)) is function else None
