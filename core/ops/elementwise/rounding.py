"""Rounding, clamping, common divisors, and mantissa and exponent."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from ...array_like import as_array
from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import converted, is_inexact, result_type
from ...tensors import Operand, Tensor
from ...types import Array
from ..create.from_data import as_tensor
from ..table.factories import binary, comparison, same_dtype, zero_gradient
from ..table.nodes import keep, record, record_fitted
from ..table.operands import check_tensor
from ..table.operation import operation
from ..table.rows import Row
from . import operators


def _whole(function: Any) -> Any:
    def forward(x: Array) -> Any:
        return x.copy() if x.dtype.kind in "biu" else function(x)

    return forward


floor = same_dtype(
    "floor",
    _whole(np.floor),
    None,
    doc="Return the largest integer that is not greater than each element, in the dtype of ``input``.",
    method=True,
    in_place=True,
)
ceil = same_dtype(
    "ceil",
    _whole(np.ceil),
    None,
    doc="Return the smallest integer that is not less than each element, in the dtype of ``input``.",
    method=True,
    in_place=True,
)
trunc = same_dtype(
    "trunc",
    _whole(np.trunc),
    None,
    doc="Return ``input`` without its fractional part.",
    method=True,
    in_place=True,
    synonyms=("fix",),
)
frac = same_dtype(
    "frac",
    lambda x: x - np.trunc(x),
    lambda xp, g: g,
    doc="Return the fractional part, with the sign of ``input``.",
    method=True,
    in_place=True,
)

_ROUND = Row("round", zero_gradient)


@operation(method=True, in_place="overwrite", synonyms=("special.round",))
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Return each element rounded to ``decimals`` decimal places; halves are rounded to the even number.

    Args:
        input: any shape, real.
        decimals: number of decimal places; -1 rounds to tens, -2 to hundreds.
        out: where the result is written.

    Raises:
        TypeError: ``input`` is complex.
    """
    x = input._array
    if x.dtype.kind == "c":
        raise TypeError("round() does not take complex numbers; round .real and .imag")
    result = Tensor(x.copy() if x.dtype.kind in "biu" and decimals >= 0 else np.round(x, decimals))
    if input._requires_grad and is_grad_enabled():
        record(_ROUND, result, (input,), ())
    return result


@operation(method=True, in_place=True, synonyms=("clip",))
def clamp(
    input: Tensor, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return ``input`` limited to [``min``, ``max``]; the gradient passes where ``input`` is within the bounds.

    Where ``min`` is above ``max``, the result is ``max``.

    Args:
        input: any shape, real.
        min: lower bound, a number or a tensor that is broadcast; none if ``None``.
        max: upper bound, likewise.
        out: where the result is written.

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
    result = Tensor(as_array(np.clip(x, _within_type(x, min), _within_type(x, max))).astype(x.dtype, copy=False))
    if input._requires_grad and is_grad_enabled():
        record(_CLAMP, result, (input,), (keep(input),), min, max)
    return result


def _within_type(x: Array, bound: Any) -> Any:
    # NumPy refuses bounds outside the range of the dtype; the ends of that range have the same effect.
    if bound is None or x.dtype.kind not in "iu":
        return bound
    about = np.iinfo(x.dtype)
    return builtins.min(builtins.max(bound, int(about.min)), int(about.max))


@operation(method=True, in_place=True)
def clamp_min(input: Tensor, min: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return ``input`` limited to values of at least ``min``.

    Args:
        input: any shape, real.
        min: lower bound, a number or a tensor that is broadcast.
        out: where the result is written.
    """
    return clamp(input, min)


@operation(method=True, in_place=True)
def clamp_max(input: Tensor, max: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return ``input`` limited to values of at most ``max``.

    Args:
        input: any shape, real.
        max: upper bound, a number or a tensor that is broadcast.
        out: where the result is written.
    """
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


class MantissaExponent(NamedTuple):
    """Result of ``frexp``."""

    mantissa: Tensor
    exponent: Tensor


def _nextafter(x: Any, y: Any) -> Any:
    dtype = np.result_type(x, y)
    if dtype.kind not in "fV":
        raise TypeError(f"nextafter() takes floating-point numbers, and you gave {dtype}")
    return np.nextafter(x, y)


gcd = comparison(
    "gcd",
    np.gcd,
    "Return the greatest common divisor of integers, element by element.",
    method=True,
    in_place=True,
    numbers="neither",
)
lcm = comparison(
    "lcm",
    np.lcm,
    "Return the least common multiple of integers, element by element.",
    method=True,
    in_place=True,
    numbers="neither",
)
nextafter = binary(
    "nextafter",
    _nextafter,
    lambda xp, g, a, b: xp.chosen(a != b, g),
    lambda xp, g, a, b: xp.zeros_like(g),
    saves=("ab", ""),
    doc="Return the next number of the dtype from ``input`` towards ``other``; the gradient is 1 where they differ.",
    method=True,
    in_place=True,
    numbers="neither",
)
_FREXP = Row("frexp", lambda xp, g, scale: g * scale)


@operation(method=True)
def frexp(input: Tensor) -> MantissaExponent:
    """Return mantissa and exponent: ``input == mantissa * 2**exponent``, ``0.5 <= abs(mantissa) < 1``, the exponent ``int32``.

    Raises:
        TypeError: ``input`` is not floating-point.
    """
    if not is_inexact(input.dtype) or input.dtype.kind == "c":
        raise TypeError(f"frexp() takes floating-point numbers, not {input.dtype}")
    mantissa, exponent = np.frexp(input._array)
    result = Tensor(mantissa)
    if input._requires_grad and is_grad_enabled():
        record(_FREXP, result, (input,), (), np.ldexp(np.ones_like(mantissa), -exponent))
    return MantissaExponent(result, Tensor(np.asarray(exponent, np.int32)))


@operation(method=True, in_place=True)
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``input * 2 ** other``.

    Args:
        input: any shape, real.
        other: the exponents, broadcast.
        out: where the result is written.

    Raises:
        TypeError: ``input`` or ``other`` is not a tensor.
    """
    check_tensor("ldexp", "input", input)
    check_tensor("ldexp", "other", other)
    return operators.mul(input, operators.pow(2.0, other))
