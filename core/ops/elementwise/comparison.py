"""Comparisons, extremes of two numbers, and whether numbers are finite, close or equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..table.factories import binary, comparison, predicate
from ..table.operands import coerce, real_only
from ..table.operation import operation


def _larger(xp: Any, g: Any, a: Any, b: Any) -> Any:
    return xp.where(a == b, g * 0.5, xp.where(a < b, 0.0, g))


def _smaller(xp: Any, g: Any, a: Any, b: Any) -> Any:
    return _larger(xp, g, b, a)


maximum = binary(
    "maximum",
    real_only(np.maximum),
    _larger,
    _smaller,
    saves=("ab", "ab"),
    doc="Return the larger of the two, nan if either is; equal ones share the gradient.",
    method=True,
)
minimum = binary(
    "minimum",
    real_only(np.minimum),
    _smaller,
    _larger,
    saves=("ab", "ab"),
    doc="Return the smaller of the two, nan if either is; equal ones share the gradient.",
    method=True,
)

eq = comparison(
    "eq", np.equal, "Return where ``input == other``, as a boolean tensor.", operator="eq", method=True, in_place=True
)
ne = comparison(
    "ne",
    np.not_equal,
    "Return where ``input != other``, as a boolean tensor.",
    operator="ne",
    method=True,
    in_place=True,
    synonyms=("not_equal",),
)
lt = comparison(
    "lt",
    np.less,
    "Return where ``input < other``, as a boolean tensor.",
    ordered=True,
    operator="lt",
    method=True,
    in_place=True,
    synonyms=("less",),
)
le = comparison(
    "le",
    np.less_equal,
    "Return where ``input <= other``, as a boolean tensor.",
    ordered=True,
    operator="le",
    method=True,
    in_place=True,
    synonyms=("less_equal",),
)
gt = comparison(
    "gt",
    np.greater,
    "Return where ``input > other``, as a boolean tensor.",
    ordered=True,
    operator="gt",
    method=True,
    in_place=True,
    synonyms=("greater",),
)
ge = comparison(
    "ge",
    np.greater_equal,
    "Return where ``input >= other``, as a boolean tensor.",
    ordered=True,
    operator="ge",
    method=True,
    in_place=True,
    synonyms=("greater_equal",),
)
logical_not = predicate(
    "logical_not", np.logical_not, "Return where ``input`` is false (zero).", method=True, in_place=True
)
isnan = predicate("isnan", np.isnan, "Return where ``input`` is nan.", method=True)
isfinite = predicate("isfinite", np.isfinite, "Return where ``input`` is neither infinite nor nan.", method=True)


def _is(value: float) -> Any:
    return lambda x: x == value if x.dtype.kind in "fV" else np.zeros(x.shape, np.bool_)


def _signbit(x: Array) -> Any:
    return np.signbit(x) if x.dtype.kind in "fV" else x < 0


isinf = predicate("isinf", np.isinf, "Return where ``input`` is infinite, of either sign.", method=True)
isposinf = predicate("isposinf", _is(np.inf), "Return where ``input`` is inf.", method=True)
isneginf = predicate("isneginf", _is(-np.inf), "Return where ``input`` is -inf.", method=True)
isreal = predicate("isreal", np.isreal, "Return where ``input`` has no imaginary part.", method=True)
signbit = predicate("signbit", _signbit, "Return where the sign is negative, of -0.0 too.", method=True)


@operation(method=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return where ``input`` differs from ``other`` by at most ``atol + rtol * abs(other)``; equal infinities are close.

    Args:
        input: any shape.
        other: of the dtype of ``input``, broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether nan equals nan.

    Raises:
        TypeError: the dtypes differ.
    """
    if input.dtype != other.dtype:
        raise TypeError(f"isclose() needs one dtype, and you gave {input.dtype} and {other.dtype}")
    x, y = coerce("isclose", input._array, other._array)
    if x.dtype.kind in "biu":
        x, y = x.astype(np.float64), y.astype(np.float64)
    difference = np.abs(x - y)
    close = (x == y) | (np.isfinite(difference) & (difference <= atol + rtol * np.abs(y)))
    return Tensor(close | (np.isnan(x) & np.isnan(y)) if equal_nan else close)


@operation(method=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether ``isclose`` holds everywhere.

    Args:
        input: any shape.
        other: of the dtype of ``input``, broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether nan equals nan.
    """
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@operation(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether both have the same shape and the same elements; nan equals nothing."""
    return input.shape == other.shape and bool(np.all(input._array == other._array))


fmax = binary(
    "fmax",
    real_only(np.fmax),
    lambda xp, g, a, b: xp.where((a >= b) | xp.isnan(b), g, 0.0),
    lambda xp, g, a, b: xp.where((a >= b) | xp.isnan(b), 0.0, g),
    saves=("ab", "ab"),
    doc="Return the larger of the two; of a number and nan, the number. The gradient of equal ones goes to ``input``.",
    method=True,
)
fmin = binary(
    "fmin",
    real_only(np.fmin),
    lambda xp, g, a, b: xp.where((a <= b) | xp.isnan(b), g, 0.0),
    lambda xp, g, a, b: xp.where((a <= b) | xp.isnan(b), 0.0, g),
    saves=("ab", "ab"),
    doc="Return the smaller of the two; of a number and nan, the number. The gradient of equal ones goes to ``input``.",
    method=True,
)
