"""Comparisons, element-wise maximum and minimum, and tests for nan, infinity and equality."""

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
    doc="Return the larger of the two elements, nan if either is nan; equal elements share the gradient.",
    method=True,
    numbers="neither",
)
minimum = binary(
    "minimum",
    real_only(np.minimum),
    _smaller,
    _larger,
    saves=("ab", "ab"),
    doc="Return the smaller of the two elements, nan if either is nan; equal elements share the gradient.",
    method=True,
    numbers="neither",
)

eq = comparison(
    "eq",
    np.equal,
    "Return ``input == other``, element by element, a boolean tensor.",
    operator="eq",
    method=True,
    in_place=True,
    numbers="second",
)
ne = comparison(
    "ne",
    np.not_equal,
    "Return ``input != other``, element by element, a boolean tensor.",
    operator="ne",
    method=True,
    in_place=True,
    synonyms=("not_equal",),
    numbers="second",
)
lt = comparison(
    "lt",
    np.less,
    "Return ``input < other``, element by element, a boolean tensor.",
    ordered=True,
    operator="lt",
    method=True,
    in_place=True,
    synonyms=("less",),
    numbers="second",
)
le = comparison(
    "le",
    np.less_equal,
    "Return ``input <= other``, element by element, a boolean tensor.",
    ordered=True,
    operator="le",
    method=True,
    in_place=True,
    synonyms=("less_equal",),
    numbers="second",
)
gt = comparison(
    "gt",
    np.greater,
    "Return ``input > other``, element by element, a boolean tensor.",
    ordered=True,
    operator="gt",
    method=True,
    in_place=True,
    synonyms=("greater",),
    numbers="second",
)
ge = comparison(
    "ge",
    np.greater_equal,
    "Return ``input >= other``, element by element, a boolean tensor.",
    ordered=True,
    operator="ge",
    method=True,
    in_place=True,
    synonyms=("greater_equal",),
    numbers="second",
)
logical_not = predicate(
    "logical_not", np.logical_not, "Return whether each element is zero, a boolean tensor.", method=True, in_place=True
)
isnan = predicate("isnan", np.isnan, "Return whether each element is nan, a boolean tensor.", method=True)
isfinite = predicate(
    "isfinite", np.isfinite, "Return whether each element is neither infinite nor nan, a boolean tensor.", method=True
)


def _is(value: float) -> Any:
    return lambda x: x == value if x.dtype.kind in "fV" else np.zeros(x.shape, np.bool_)


def _signbit(x: Array) -> Any:
    return np.signbit(x) if x.dtype.kind in "fV" else x < 0


isinf = predicate("isinf", np.isinf, "Return whether each element is inf or -inf, a boolean tensor.", method=True)
isposinf = predicate("isposinf", _is(np.inf), "Return whether each element is inf, a boolean tensor.", method=True)
isneginf = predicate("isneginf", _is(-np.inf), "Return whether each element is -inf, a boolean tensor.", method=True)
isreal = predicate(
    "isreal", np.isreal, "Return whether the imaginary part of each element is 0, a boolean tensor.", method=True
)
signbit = predicate(
    "signbit",
    _signbit,
    "Return whether the sign bit of each element is set (also of -0.0), a boolean tensor.",
    method=True,
)


@operation(method=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return whether ``abs(input - other) <= atol + rtol * abs(other)``, element by element; equal infinities are close.

    Args:
        input: any shape.
        other: of the dtype of ``input``, broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether nan equals nan.

    Raises:
        TypeError: the dtypes differ.
        ValueError: a tolerance is negative.
    """
    if rtol < 0 or atol < 0:
        raise ValueError(f"isclose() needs tolerances of 0 or more, and you gave rtol={rtol}, atol={atol}")
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
    """Return whether ``isclose`` is true for every element.

    Args:
        input: any shape.
        other: of the dtype of ``input``, broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether nan equals nan.

    Raises:
        TypeError: the dtypes differ.
    """
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@operation(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether both have the same shape and the same elements; nan is not equal to nan."""
    return input.shape == other.shape and bool(np.all(input._array == other._array))


fmax = binary(
    "fmax",
    real_only(np.fmax),
    lambda xp, g, a, b: xp.where((a >= b) | xp.isnan(b), g, 0.0),
    lambda xp, g, a, b: xp.where((a >= b) | xp.isnan(b), 0.0, g),
    saves=("ab", "ab"),
    doc="Return the larger of the two elements; a number rather than nan. For equal elements ``input`` gets the gradient.",
    method=True,
    numbers="neither",
)
fmin = binary(
    "fmin",
    real_only(np.fmin),
    lambda xp, g, a, b: xp.where((a <= b) | xp.isnan(b), g, 0.0),
    lambda xp, g, a, b: xp.where((a <= b) | xp.isnan(b), 0.0, g),
    saves=("ab", "ab"),
    doc="Return the smaller of the two elements; a number rather than nan. For equal elements ``input`` gets the gradient.",
    method=True,
    numbers="neither",
)
