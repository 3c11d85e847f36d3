"""Numbers kept within bounds: ``clamp``."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import converted, result_type
from ...tensors import Operand, Tensor
from ...types import Array
from ..create.from_data import as_tensor
from ..table.broadcasting import record_fitted
from ..table.nodes import Row, keep, record
from ..table.operation import operation


@operation(method=True, in_place=True, synonyms=("clip",))
def clamp(
    input: Tensor, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None
) -> Tensor:
    """``input``, but not below ``min`` nor above ``max``; the gradient flows where it is within the bounds.

    Where they contradict one another, ``max`` holds.

    Raises:
        ValueError: both bounds are missing.
    """
    if min is None and max is None:
        raise ValueError("clamp() needs min, max, or both")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return _clamp_between(input, min, max)
    x = input._array
    if x.dtype.kind not in "fV":
        x = converted(x, result_type(x, *(bound for bound in (min, max) if bound is not None)))
    result = Tensor(np.asarray(np.clip(x, _within_type(x, min), _within_type(x, max)), x.dtype))
    if input._requires_grad and is_grad_enabled():
        record(_CLAMP, result, (input,), (keep(input),), min, max)
    return result


def _within_type(x: Array, bound: Any) -> Any:
    # NumPy refuses bounds that the type cannot hold; the nearest that it holds mean the same.
    if bound is None or x.dtype.kind not in "iu":
        return bound
    about = np.iinfo(x.dtype)
    return builtins.min(builtins.max(bound, int(about.min)), int(about.max))


@operation(method=True, in_place=True)
def clamp_min(input: Tensor, min: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input``, but not below ``min``."""
    return clamp(input, min)


@operation(method=True, in_place=True)
def clamp_max(input: Tensor, max: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input``, but not above ``max``."""
    return clamp(input, None, max)


def _clamp_between(input: Tensor, min: Any, max: Any) -> Tensor:
    dtype = result_type(input, *(bound for bound in (min, max) if bound is not None))
    bounds = [None if bound is None else as_tensor(bound) for bound in (min, max)]
    x = converted(input._array, dtype)
    low, high = (None if bound is None else converted(bound._array, dtype) for bound in bounds)
    result = Tensor(np.clip(x, low, high).astype(dtype, copy=False))
    inputs = (input, *bounds)
    arrays = (x, low, high)
    saved = tuple(None if tensor is None else keep(tensor, array) for tensor, array in zip(inputs, arrays))
    return record_fitted(_CLAMP_BETWEEN, result, inputs, saved)


def _within(xp: Any, g: Any, a: Any, low: Any, high: Any) -> Any:
    if low is not None:
        g = xp.chosen(a >= low, g)
    return g if high is None else xp.chosen(a <= high, g)


def _at_low(xp: Any, g: Any, a: Any, low: Any, high: Any) -> Any:
    return xp.chosen(a < low if high is None else (a < low) & (low < high), g)


def _at_high(xp: Any, g: Any, a: Any, low: Any, high: Any) -> Any:
    return xp.chosen(a > high if low is None else (a > high) | (high < low), g)


_CLAMP = Row("clamp", _within)
_CLAMP_BETWEEN = Row("clamp", _within, _at_low, _at_high)
