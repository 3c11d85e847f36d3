"""Ways to combine the tensors of several ranks (``torch.distributed.ReduceOp``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from ..core.extend import Array


class ReduceOp(Enum):
    """Ways to combine the tensors of several ranks, element by element (``torch.distributed.ReduceOp``).

    ``AVG`` is for floating-point and complex numbers, the bitwise ones are for integers and bools.
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


FUNCTIONS: dict[ReduceOp, Callable[..., Any]] = {
    ReduceOp.SUM: np.add,
    ReduceOp.AVG: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}
BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def check_op(op: Any, dtype: Any) -> None:
    """Check that tensors of a dtype can be combined that way.

    Raises:
        TypeError: ``op`` is no ``ReduceOp``, or the dtype has no such operation.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op must be a ReduceOp, such as ReduceOp.SUM; you gave {op!r}")
    whole = dtype.kind in "iub"
    if op in BITWISE and not whole:
        raise TypeError(f"op={op.name} is for integers and bools; you gave a tensor of {dtype}")
    if op is ReduceOp.AVG and whole:
        raise TypeError(f"op=AVG is for floating-point numbers; you gave a tensor of {dtype}: use SUM and divide")
    if op in (ReduceOp.MIN, ReduceOp.MAX) and dtype.kind == "c":
        raise TypeError(f"op={op.name} needs an order, and complex numbers have none")


def combine(parts: Sequence[Array], op: ReduceOp) -> Array:
    """Return the combination of equal arrays, from the first to the last, in the memory of the first.

    The order makes the result the same on every rank, to the bit.

    Args:
        parts: arrays of one shape and dtype; the first is changed.
        op: how; ``AVG`` divides at the end.
    """
    return combine_into(parts[0], parts, op)


def combine_into(result: Array, parts: Sequence[Array], op: ReduceOp) -> Array:
    """Return the combination of equal arrays in the memory of ``result``.

    Args:
        result: of the shape and dtype of the parts; the first of them, or memory of its own.
        parts: see ``combine``.
        op: see ``combine``.
    """
    function = FUNCTIONS[op]
    first, others = parts[0], parts[1:]
    if not others:
        np.copyto(result, first)
    for part in others:
        first = function(first, part, out=result)
    if op is ReduceOp.AVG:
        np.divide(result, len(parts), out=result, casting="unsafe")
    return result
