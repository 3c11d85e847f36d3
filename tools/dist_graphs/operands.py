"""Operands of operations: tensors, references to tensors elsewhere, and futures of tensors."""

from __future__ import annotations

from typing import Any, TypeAlias

from ...core.futures import Future
from ...rref import RRef

Value: TypeAlias = Any


async def here(operand: Value) -> Any:
    """Return the tensor of an operand on this worker."""
    if isinstance(operand, RRef):
        return await operand.to_here_async()
    return await operand if isinstance(operand, Future) else operand
