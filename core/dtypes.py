"""Element types: NumPy's, under PyTorch's names, with PyTorch's rules of promotion.

A tensor with dimensions decides the type before one without, and that before a Python number: an operand that comes
later counts only when its category (bool < integer < floating point < complex) is higher. So ``float32`` stays
``float32`` beside an ``int64`` tensor, a ``float64`` 0-d tensor or a Python float. NumPy would widen the first two.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

from .types import Array, DType

__all__ = [
    "bool_",
    "complex128",
    "complex64",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "int16",
    "int32",
    "int64",
    "int8",
    "promote_types",
    "result_type",
    "set_default_dtype",
    "uint8",
]

bool_ = np.dtype(np.bool_)
uint8 = np.dtype(np.uint8)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)

_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_default: ContextVar[DType] = ContextVar("telegrad_default_dtype", default=float32)

get_default_dtype = _default.get


def set_default_dtype(dtype: npt.DTypeLike) -> None:
    """Choose the floating-point type of new tensors in this context (thread or task); it is ``float32`` at first.

    Raises:
        TypeError: ``dtype`` is not a floating-point type.
    """
    chosen = np.dtype(dtype)
    if chosen.kind != "f":
        raise TypeError(
            f"the default dtype must be a floating-point type, not {chosen}; use float16, float32 or float64"
        )
    _default.set(chosen)


def to_float(array: Array) -> Array:
    """``array`` itself if it holds floating-point (or complex) numbers, else a copy in the default dtype."""
    return array if array.dtype.kind in "fc" else array.astype(_default.get())


def promote_types(first: npt.DTypeLike, second: npt.DTypeLike) -> DType:
    """The type that holds both: that of the higher category, or the wider one within a category."""
    a, b = np.dtype(first), np.dtype(second)
    if a is b:
        return a
    rank_a, rank_b = category(a), category(b)
    if rank_a == rank_b or rank_a + rank_b >= 5:  # float with complex: the complex type must be wide enough
        return np.promote_types(a, b)
    return a if rank_a > rank_b else b


def category(dtype: DType) -> int:
    """0 for bool, 1 for integers, 2 for floating point, 3 for complex.

    Raises:
        TypeError: tensors cannot hold that type.
    """
    try:
        return _CATEGORY[dtype.kind]
    except KeyError:
        raise TypeError(f"tensors hold numbers and booleans, not {dtype}") from None


def result_type(*operands: Any) -> DType:
    """The type of an operation on ``operands``: arrays (or tensors) and Python numbers."""
    by_rank: list[DType | None] = [None, None, None]  # with dimensions, 0-d, Python number
    for operand in operands:
        rank, dtype = _classify(operand)
        have = by_rank[rank]
        by_rank[rank] = dtype if have is None else promote_types(have, dtype)
    result: DType | None = None
    for dtype_of_rank in by_rank:
        if dtype_of_rank is not None and (result is None or category(dtype_of_rank) > category(result)):
            result = dtype_of_rank
    if result is None:
        raise TypeError("result_type needs at least one operand")
    return result


def _classify(operand: Any) -> tuple[int, DType]:
    if isinstance(operand, np.generic):
        operand = operand.item()
    if isinstance(operand, bool):
        return 2, bool_
    if isinstance(operand, int):
        return 2, int64
    if isinstance(operand, float):
        return 2, _default.get()
    if isinstance(operand, complex):
        return 2, np.promote_types(_default.get(), complex64)
    array = getattr(operand, "_array", operand)
    return (0 if array.ndim else 1), array.dtype
