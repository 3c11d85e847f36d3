"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from typing import Any, Protocol, overload

import numpy as np

from ...array_like import as_array
from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import complex128, float64, to_float
from ...tensors import Operand, Tensor
from ...types import Array
from ..create.from_data import as_tensor
from ..index.masking import where
from ..special.exponential_arrays import log1p_exp
from ..table.array_functions import sigmoid as logistic
from ..table.factories import binary, same_dtype, unary
from ..table.nodes import keep, record
from ..table.operands import check_tensor, real_only
from ..table.operation import operation
from ..table.rows import ARRAYS, Row
from . import in_double, operators
from .comparison import eq
from .conversion import to

exp = unary(
    "exp",
    np.exp,
    lambda xp, g, out: g * out,
    saves="o",
    doc="Return ``e ** input``, element by element.",
    method=True,
    in_place=True,
)


class Log(Protocol):
    """Signatures of ``log``: an operation, or a record of scalars."""

    @overload
    def __call__(self, input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def __call__(self, *, step: int | None = None, **scalars: Any) -> None: ...


def _log_scalars(**scalars: Any) -> None:
    from ...recording import log_scalars  # here: few programs log

    log_scalars(**scalars)


log: Log = unary(  # type: ignore[assignment]
    "log",
    np.log,
    lambda xp, g, a: g / a,
    saves="a",
    doc="""Return the natural logarithm of each element.

    Called with names only, as ``log(loss=0.3, step=7)``, it records scalars of the program instead, and returns None: see
    ``telegrad.core.recording.log_scalars``.
    """,
    by_names=_log_scalars,
    method=True,
    in_place=True,
)
sqrt = unary(
    "sqrt",
    np.sqrt,
    lambda xp, g, out: g / (2 * out),
    saves="o",
    doc="Return the square root of each element.",
    method=True,
    in_place=True,
)


def _sigmoid_rule(xp: Any, g: Any, out: Any) -> Any:
    slope = 1 - out
    slope *= out  # in place: new memory costs more than the arithmetic
    slope *= g
    return slope


sigmoid = unary(
    "sigmoid",
    logistic,
    _sigmoid_rule,
    saves="o",
    doc="Return ``1 / (1 + exp(-input))``.",
    method=True,
    in_place=True,
    synonyms=("special.expit",),
)


def logaddexp_of(x: Any, y: Any) -> Any:
    """Return ``log(exp(x) + exp(y))`` on arrays, complex ones included, without overflow."""
    dtype = np.result_type(x, y)
    if dtype.kind != "c":
        if dtype.itemsize < 4:
            return np.logaddexp(x, y)
        result = np.maximum(x, y) + log1p_exp(-np.abs(x - y))
        return np.logaddexp(x, y) if np.isnan(result).any() else result  # equal infinities, of which it knows
    x, y = np.broadcast_arrays(x, y)
    small, large = np.where(x.real < y.real, (x, y), (y, x))
    # Equal infinities: their difference is nan.
    return np.where(np.isinf(large.real) & (small == large), large, large + np.log1p(np.exp(small - large)))


def _log(xp: Any, b: Any) -> Any:
    return np.log(b).item() if isinstance(b, (bool, int, float, complex)) else xp.log(b)


def _xlogy(x: Any, y: Any) -> Any:
    # NumPy's logarithm of a Python number is a float64, which would widen the result.
    product = np.multiply(x, _log(np, y))
    return np.where((np.equal(x, 0)) & ~np.isnan(y), product.dtype.type(0), product)


def _hypot_rule(xp: Any, g: Any, a: Any, out: Any) -> Any:
    share = a / out
    if xp is not ARRAYS:
        return g * share
    share *= g
    return share


def _square(x: Array) -> Any:
    return np.multiply(x, x, dtype=np.int64) if x.dtype.kind == "b" else np.square(x)


exp2 = unary(
    "exp2",
    np.exp2,
    lambda xp, g, out: g * out * math.log(2),
    saves="o",
    doc="Return ``2 ** input``.",
    method=True,
    in_place=True,
    synonyms=("special.exp2",),
)
expm1 = unary(
    "expm1",
    np.expm1,
    lambda xp, g, out: g * (out + 1),
    saves="o",
    doc="Return ``exp(input) - 1``, precise near 0.",
    method=True,
    in_place=True,
    synonyms=("special.expm1",),
)
log1p = unary(
    "log1p",
    np.log1p,
    lambda xp, g, a: g / (a + 1),
    saves="a",
    doc="Return ``log(1 + input)``, precise near 0.",
    method=True,
    in_place=True,
    synonyms=("special.log1p",),
)
log2 = unary(
    "log2",
    np.log2,
    lambda xp, g, a: g / (a * math.log(2)),
    saves="a",
    doc="Return the logarithm to base 2 of each element.",
    method=True,
    in_place=True,
)
log10 = unary(
    "log10",
    np.log10,
    lambda xp, g, a: g / (a * math.log(10)),
    saves="a",
    doc="Return the logarithm to base 10 of each element.",
    method=True,
    in_place=True,
)
rsqrt = unary(
    "rsqrt",
    lambda x: 1 / np.sqrt(x),
    lambda xp, g, out: -0.5 * g * (out * out * out),
    saves="o",
    doc="Return ``1 / sqrt(input)``.",
    method=True,
    in_place=True,
)
reciprocal = unary(
    "reciprocal",
    lambda x: 1 / x,
    lambda xp, g, out: -g * (out * out),
    saves="o",
    doc="Return ``1 / input``.",
    method=True,
    in_place=True,
)
square = same_dtype(
    "square", _square, lambda xp, g, a: g * (a * 2), saves="a", doc="Return ``input ** 2``.", method=True, in_place=True
)
hypot = binary(
    "hypot",
    real_only(in_double.hypot),
    lambda xp, g, a, b, out: _hypot_rule(xp, g, a, out),
    lambda xp, g, a, b, out: _hypot_rule(xp, g, b, out),
    saves=("ao", "bo"),
    floats=True,
    doc="Return ``sqrt(input**2 + other**2)``, without overflow.",
    method=True,
    in_place=True,
    numbers="neither",
)
logaddexp = binary(
    "logaddexp",
    logaddexp_of,
    lambda xp, g, a, b: g * xp.sigmoid(a - b),
    lambda xp, g, a, b: g * xp.sigmoid(b - a),
    saves=("ab", "ab"),
    floats=True,
    doc="Return ``log(exp(input) + exp(other))``, without overflow.",
    method=True,
    numbers="neither",
)
logaddexp2 = binary(
    "logaddexp2",
    real_only(np.logaddexp2),
    lambda xp, g, a, b: g / (1 + 2.0 ** (b - a)),
    lambda xp, g, a, b: g / (1 + 2.0 ** (a - b)),
    saves=("ab", "ab"),
    floats=True,
    doc="Return ``log2(2**input + 2**other)``, without overflow.",
    method=True,
    numbers="neither",
)
xlogy = binary(
    "xlogy",
    _xlogy,
    lambda xp, g, a, b: xp.where((a == 0) & (b <= 0), 0.0, g * _log(xp, b)),
    lambda xp, g, a, b: g * (a / b),
    saves=("ab", "ab"),
    floats=True,
    doc="Return ``input * log(other)``; it is 0 where ``input`` is 0 and ``other`` is not nan.",
    method=True,
    in_place=True,
    synonyms=("special.xlogy",),
)


@operation(method=True, in_place=True)
def float_power(input: Operand, exponent: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return ``input ** exponent`` computed in float64 (complex128 for complex numbers).

    Args:
        input: any shape.
        exponent: a tensor or number, broadcast.
        out: where the result is written.
    """
    wide = [to(each, _widest(each)) if isinstance(each, Tensor) else each for each in (input, exponent)]
    return operators.pow(*wide)


def _widest(tensor: Tensor) -> Any:
    return complex128 if tensor._array.dtype.kind == "c" else float64


@operation(method=True, in_place=True, synonyms=("special.logit",))
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(input / (1 - input))``; nan outside [0, 1], unless ``eps`` clamps ``input``.

    Args:
        input: any shape.
        eps: ``input`` is clamped to [``eps``, ``1 - eps``] first; ``None`` for no clamping.
        out: where the result is written.

    Raises:
        TypeError: ``input`` is complex.
    """
    x = to_float(input._array)
    if x.dtype.kind == "c":
        raise TypeError(f"logit() takes real numbers only, and you gave {x.dtype}")
    inside = x if eps is None else np.clip(x, eps, 1 - eps)
    odds = as_array(1 - inside)  # in place from here: new memory costs more than the arithmetic
    np.divide(inside, odds, out=odds)
    result = Tensor(np.log(odds, out=odds).astype(x.dtype, copy=False))
    if input._requires_grad and is_grad_enabled():
        record(_LOGIT, result, (input,), (keep(input),), eps)
    return result


def _logit_rule(xp: Any, g: Any, a: Any, eps: float | None) -> Any:
    low, beyond = (0.0, math.nan) if eps is None else (eps, 0.0)
    if xp is ARRAYS:
        variance = as_array(1 - a)
        variance *= a
        slope = np.divide(g, np.abs(variance, out=variance), out=variance)
    else:
        slope = g / xp.abs(a * (1 - a))
    outside = (a < low) | (a > 1 - low)
    if xp is ARRAYS and type(a) is np.ndarray and not outside.any():
        return slope
    return xp.where(outside, beyond, slope)


_LOGIT = Row("logit", _logit_rule)


@operation(function="special.entr")
def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the entropy ``-input * log(input)``: 0 at 0, and -inf for negative numbers."""
    return where(input < 0, -math.inf, -xlogy(input, input))


@operation(function="special.xlog1py")
def xlog1py(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return ``input * log1p(other)``; it is 0 where ``input`` is 0 and ``other`` is not nan.

    Args:
        input: a tensor or a number.
        other: a tensor or number, broadcast with ``input``.
        out: where the result is written.

    Raises:
        TypeError: neither is a tensor.
    """
    if not isinstance(input, Tensor):
        check_tensor("special.xlog1py", "other", other)
    dtype = input.dtype if isinstance(input, Tensor) and not isinstance(other, Tensor) else None
    other = as_tensor(other, dtype)
    silent = eq(as_tensor(input), 0) & ((other <= -1) | (other == math.inf))
    # Replaced before the product: 0 times infinity would be nan, also in the gradient.
    return operators.mul(input, where(silent, 0.0, log1p(other)))
