"""Element types: NumPy's (and bfloat16 of ml_dtypes, where that is installed), with PyTorch's rules of promotion.

A tensor with dimensions decides the type before one without, and that before a Python number: an operand that comes
later counts only when its category (bool < integer < floating point < complex) is higher. So ``float32`` stays
``float32`` beside an ``int64`` tensor, a ``float64`` 0-d tensor or a Python float. NumPy would widen the first two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .array_like import ArrayLike
from .types import Array, DType

__all__ = [
    "bool_",
    "can_cast",
    "complex128",
    "complex64",
    "finfo",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "iinfo",
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

bfloat16: DType | None
try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    bfloat16 = None
else:
    bfloat16 = np.dtype(_bfloat16)
    __all__ += ["bfloat16"]

_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}  # V is NumPy's kind for dtypes of other packages
_FLOATING = "fV"
_INEXACT = "fcV"
_default: DType = float32


def dtype_by_name(name: str) -> DType:
    """Return the dtype of a name, ``"float32"``.

    Raises:
        ImportError: it is one of the package ``ml_dtypes``, which is not installed.
    """
    try:
        return np.dtype(name)
    except TypeError:
        raise ImportError(f"the dtype {name} needs the package ml_dtypes; install it") from None


def get_default_dtype() -> DType:
    """Return the floating-point dtype of new tensors."""
    return _default


def set_default_dtype(dtype: npt.DTypeLike) -> None:
    """Set the floating-point dtype of new tensors in this process, in every thread; it is ``float32`` at first.

    Raises:
        TypeError: ``dtype`` is not a floating-point dtype.
    """
    global _default
    chosen = np.dtype(dtype)
    if not is_floating(chosen):
        raise TypeError(
            f"the default dtype must be a floating-point type, not {chosen}; use float16, float32 or float64"
        )
    _default = chosen


def is_floating(dtype: DType) -> bool:
    """Return whether a dtype holds real floating-point numbers, bfloat16 included (whose ``kind`` is not ``"f"``)."""
    return dtype.kind in _FLOATING


def is_inexact(dtype: DType) -> bool:
    """Return whether a dtype holds floating-point or complex numbers: whether its tensors can require grad."""
    return dtype.kind in _INEXACT


def to_float(array: Array) -> Array:
    """Return ``array`` itself if it holds floating-point or complex numbers, else a copy in the default dtype."""
    return array if array.dtype.kind in _INEXACT else array.astype(_default)


def wide_type(dtype: DType) -> DType:
    """Return the dtype in which numbers of ``dtype`` are added up: float32 for floating-point types of 16 bits, else itself."""
    return float32 if dtype.itemsize == 2 and dtype.kind in _FLOATING else dtype


def wide(array: Array) -> Array:
    """Return ``array`` in the dtype in which its numbers are added up, ``wide_type``: a copy in float32, or itself."""
    dtype = array.dtype
    return array.astype(float32) if dtype.itemsize == 2 and dtype.kind in _FLOATING else array


def converted(array: Array, dtype: DType) -> Array:
    """Return ``array`` in ``dtype``, itself if it has that already; for a real dtype, the real part of complex numbers."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        if dtype.kind == "b":
            return array.astype(dtype)
        return array.real.astype(dtype)  # always a copy: the real part is a view
    return array.astype(dtype, copy=False)


def real_type(dtype: DType) -> DType:
    """Return the dtype of the parts of a complex dtype; any other dtype is returned unchanged."""
    return (float64 if dtype == complex128 else float32) if dtype.kind == "c" else dtype


def complex_type(dtype: DType) -> DType:
    """Return the complex dtype whose parts have ``dtype``, or the narrowest that holds them."""
    return dtype if dtype.kind == "c" else complex128 if dtype == float64 else complex64


def promote_types(type1: npt.DTypeLike, type2: npt.DTypeLike) -> DType:
    """Return the dtype of the higher category, or the wider one within a category (``torch.promote_types``).

    >>> promote_types("int64", "float16")
    dtype('float16')
    """
    a, b = np.dtype(type1), np.dtype(type2)
    if a is b:
        return a
    rank_a, rank_b = category(a), category(b)
    if "V" in (a.kind, b.kind) and rank_a == rank_b:
        return float64 if float64 in (a, b) else a if a == b else float32
    if rank_a == rank_b or rank_a + rank_b >= 5:  # float with complex: the complex type must be wide enough
        return np.promote_types(a, b)
    return a if rank_a > rank_b else b


def can_cast(from_: npt.DTypeLike, to: npt.DTypeLike) -> bool:
    """Return whether results of dtype ``from_`` may be written into a tensor of dtype ``to``: the category is not higher."""
    source, target = category(np.dtype(from_)), category(np.dtype(to))
    return source <= target


def category(dtype: DType) -> int:
    """Return 0 for bool, 1 for integers, 2 for floating point, 3 for complex.

    Raises:
        TypeError: tensors cannot hold that dtype.
    """
    try:
        rank = _CATEGORY[dtype.kind]
    except KeyError:
        rank = -1
    if rank < 0 or (dtype.kind == "V" and (bfloat16 is None or dtype != bfloat16)):
        raise TypeError(f"tensors hold numbers and booleans, not {dtype}")
    return rank


def result_type(*operands: Any) -> DType:
    """Return the dtype of an operation on ``operands``: tensors, arrays and Python numbers (``torch.result_type``).

    >>> result_type(np.ones(3, np.float32), np.float64(2), 3)
    dtype('float32')

    Raises:
        TypeError: there is no operand, or one is neither a tensor nor a number.
    """
    by_rank: list[DType | None] = [None, None, None]  # with dimensions, 0-d, Python number
    for operand in operands:
        rank, dtype = _classify(operand)
        have = by_rank[rank]
        by_rank[rank] = dtype if have is None else promote_types(have, dtype)
    result: DType | None = None
    for dtype in by_rank:  # type: ignore[assignment]
        if dtype is not None:
            result = dtype if result is None else _beside(result, dtype)
    if result is None:
        raise TypeError("result_type needs at least one operand")
    return result


def _beside(strong: DType, weak: DType) -> DType:
    if category(weak) <= category(strong):
        return strong
    # A real type beside a complex number keeps its precision.
    return complex_type(strong) if weak.kind == "c" and is_floating(strong) else promote_types(strong, weak)


def _classify(operand: Any) -> tuple[int, DType]:
    if isinstance(operand, np.generic):
        operand = operand.item()
    if isinstance(operand, bool):
        return 2, bool_
    if isinstance(operand, int):
        return 2, int64
    if isinstance(operand, float):
        return 2, _default
    if isinstance(operand, complex):
        return 2, complex_type(_default)
    array = getattr(operand, "_array", operand)
    if not isinstance(array, (np.ndarray, ArrayLike)):
        raise TypeError(f"only tensors and numbers have a result type, not {type(operand).__name__}")
    return (0 if array.ndim else 1), array.dtype


class finfo:  # noqa: N801  (PyTorch's name)
    """Limits of a floating-point dtype: ``bits``, ``eps``, ``max``, ``min``, ``tiny``, ``resolution``, ``dtype``.

    Args:
        dtype: a floating-point dtype, or a complex one, for that of its parts; the default dtype by default.

    Raises:
        TypeError: ``dtype`` is of another kind.
    """

    def __init__(self, dtype: npt.DTypeLike | None = None) -> None:
        chosen = _default if dtype is None else real_type(np.dtype(dtype))
        if not is_floating(chosen):
            raise TypeError(f"finfo() is about floating-point types, and you gave {chosen}; use iinfo()")
        about: Any
        if chosen.kind == "V":
            import ml_dtypes

            about = ml_dtypes.finfo(chosen)  # type: ignore[no-untyped-call]
        else:
            about = np.finfo(chosen)
        self.bits = int(about.bits)
        self.eps, self.max, self.min = float(about.eps), float(about.max), float(about.min)
        self.tiny = self.smallest_normal = float(about.smallest_normal)
        self.resolution = 10.0**-about.precision
        self.dtype = chosen.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:  # noqa: N801  (PyTorch's name)
    """Limits of an integer dtype: ``bits``, ``max``, ``min``, ``dtype``.

    Raises:
        TypeError: ``dtype`` is of another kind.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        chosen = np.dtype(dtype)
        if chosen.kind not in "iu":
            raise TypeError(f"iinfo() is about integer types, and you gave {chosen}; use finfo()")
        about = np.iinfo(chosen)
        self.bits, self.max, self.min = about.bits, int(about.max), int(about.min)
        self.dtype = chosen.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
