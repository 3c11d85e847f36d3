"""Further arithmetic: remainders, signs, fused products, interpolation, replacing nan."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import finfo, is_inexact
from ...tensors import Operand, Tensor
from ...types import Array, Scalar
from ..create.from_data import as_tensor
from ..table.array_functions import signs
from ..table.array_functions import where as choose
from ..table.blockwise import blockwise
from ..table.factories import binary, comparison, zero_gradient
from ..table.nodes import keep, keep_result, record, record_fitted, records
from ..table.operands import check_tensor, real_only
from ..table.operation import operation
from ..table.rows import ARRAYS, Row
from . import in_double, operators
from .operators import integers_divide

# Of float32 numbers as integers: all bits but the sign, the largest number below 0.5, 1 and -0.
_MAGNITUDE, _BELOW_HALF, _ONE, _MINUS_ZERO = map(np.int32, (0x7FFFFFFF, 0x3EFFFFFF, 0x3F800000, -(2**31)))


def _sgn_rule(xp: Any, g: Any, a: Any, out: Any) -> Any:
    if a.dtype.kind != "c":
        return xp.zeros_like(g)
    # A change in the direction of the number itself does not change its sign.
    length = xp.real(a * xp.conj(a)) ** 0.5
    return (g - out * xp.real(g * xp.conj(out))) / xp.where(length == 0, np.inf, length)


def _fmod(x: Any, y: Any) -> Any:
    return integers_divide(in_double.fmod, x, y)


def _heaviside(x: Any, y: Any) -> Any:
    return np.where(np.equal(x, 0), y, np.greater(x, 0)).astype(np.result_type(x, y))


fmod = binary(
    "fmod",
    _fmod,
    lambda xp, g, a, b: g,
    lambda xp, g, a, b: -g * xp.trunc(a / b),
    saves=("", "ab"),
    doc="Return the remainder of ``input / other``, with the sign of ``input``.",
    method=True,
    in_place=True,
    numbers="second",
)
copysign = binary(
    "copysign",
    real_only(np.copysign),
    lambda xp, g, a, out: xp.where(a == 0, 0.0, g * (out / xp.where(a == 0, 1.0, a))),
    zero_gradient,
    saves=("ao", ""),
    floats=True,
    doc="Return the absolute value of ``input`` with the sign of ``other``.",
    method=True,
    in_place=True,
    numbers="second",
)
_step = comparison(
    "heaviside",
    real_only(_heaviside),
    "Return the Heaviside step function.",
    numbers="neither",
)


@operation(method=True, in_place="overwrite")
def heaviside(input: Operand, values: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the Heaviside step function: 0 for negative, 1 for positive numbers, ``values`` for 0; not differentiable.

    Args:
        input: any shape, real.
        values: the results where ``input`` is 0, broadcast.
        out: where the result is written.
    """
    return _step(input, values)


@operation(method=True, operator="pos")
def positive(input: Tensor) -> Tensor:
    """Return ``input`` itself.

    Raises:
        TypeError: ``input`` is boolean.
    """
    if input._array.dtype.kind == "b":
        raise TypeError("positive() does not take boolean tensors; convert it, as with int()")
    return input


@operation(method=True, in_place=True)
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``sign(input)``; for complex numbers ``input / abs(input)``, and 0 for 0."""
    result = Tensor(signs(input._array))
    if records(input):
        record(_SGN, result, (input,), (keep(input), keep_result(result)))
    return result


@operation(method=True)
def rsub(input: Tensor, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """Return ``other - alpha * input``.

    Args:
        input: any shape.
        other: a tensor or number, broadcast with ``input``.
        alpha: factor of ``input``.

    Raises:
        TypeError: ``input`` is not a tensor.
    """
    check_tensor("rsub", "input", input)
    return operators.sub(other, input, alpha=alpha)


@operation(method=True, in_place="overwrite")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1, out: Tensor | None = None) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``.

    Args:
        input: any shape.
        tensor1: first factor, broadcast.
        tensor2: second factor, broadcast.
        value: factor of the product.
        out: where the result is written.
    """
    product = operators.mul(tensor1, tensor2)
    return operators.add(input, product, alpha=value)


@operation(method=True, in_place="overwrite")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1, out: Tensor | None = None) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``.

    Args:
        input: any shape.
        tensor1: dividend, broadcast.
        tensor2: divisor, broadcast.
        value: factor of the quotient.
        out: where the result is written.
    """
    return operators.add(input, operators.div(tensor1, tensor2), alpha=value)


@operation(method=True, in_place=True)
def lerp(input: Tensor, end: Tensor, weight: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """Return ``input + weight * (end - input)``: exactly ``input`` at weight 0 and ``end`` at weight 1.

    Args:
        input: any shape.
        end: the result at weight 1, of the dtype of ``input``.
        weight: a number, or a tensor that is broadcast.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ.
    """
    share = as_tensor(weight, input.dtype)
    if end.dtype != input.dtype:
        raise TypeError(f"lerp() needs one dtype, and you gave {input.dtype} and {end.dtype}")
    x, y, w = input._array, end._array, share._array
    step = y - x
    if w.ndim and x.shape == y.shape == w.shape and x.dtype == w.dtype == np.float32:
        result = Tensor(_between_singles(x, y, w, step))
    elif w.ndim:
        result = Tensor(choose(np.abs(w) < 0.5, x + w * step, y - step * (1 - w)))
    else:
        result = Tensor(x + w * step if np.abs(w) < 0.5 else y - step * (1 - w))
    saved = (keep(input), keep(end), keep(share))
    return record_fitted(_LERP, result, (input, end, share), saved, step)


@blockwise
def _between_singles(x: Array, y: Array, w: Array, step: Array) -> Any:
    # From x or y on, by masks of bits: a choice between two results costs as much as all of this.
    far = np.bitwise_and(w.view(np.int32), _MAGNITUDE)
    np.subtract(_BELOW_HALF, far, out=far)
    np.right_shift(far, 31, out=far)  # all bits where w is nearer to 1 than to 0, else none
    base = np.bitwise_xor(x.view(np.int32), y.view(np.int32))
    base &= far
    base ^= x.view(np.int32)
    far &= _ONE | _MINUS_ZERO
    far ^= _MINUS_ZERO
    share = np.subtract(far.view(np.float32), w, out=far.view(np.float32))  # 1 - w, or -w, also where that is -0
    share *= step
    return np.subtract(base.view(np.float32), share, out=share)


@operation(method=True, in_place="overwrite")
def nan_to_num(
    input: Tensor,
    nan: float | None = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``input`` with nan, inf and -inf replaced: by default by 0, the largest and the smallest finite number.

    Args:
        input: any shape.
        nan: the value in place of nan.
        posinf: in place of inf; the largest number of the dtype if ``None``.
        neginf: in place of -inf; the smallest number if ``None``.
        out: where the result is written.
    """
    x = input._array
    if not is_inexact(x.dtype):
        return Tensor(x.copy())
    about = finfo(x.dtype)
    high, low = about.max if posinf is None else posinf, about.min if neginf is None else neginf
    result = Tensor(_replaced(x, nan or 0.0, high, low))
    if records(input):
        record(_NAN_TO_NUM, result, (input,), (), np.isfinite(x))
    return result


def _replaced(x: Array, nan: float, high: float, low: float) -> Array:
    if x.dtype.kind == "c":
        result = np.empty_like(x)
        result.real, result.imag = _replaced(x.real, nan, high, low), _replaced(x.imag, nan, high, low)
        return result
    return np.where(np.isnan(x), nan, np.where(x == np.inf, high, np.where(x == -np.inf, low, x))).astype(x.dtype)


def _lerp_rule(xp: Any, g: Any, a: Any, b: Any, w: Any, step: Any) -> Any:
    if w.shape != g.shape:
        return g * (1 - w)
    result = 1 - w
    result *= g
    return result


_SGN = Row("sgn", _sgn_rule, holomorphic=False)
_LERP = Row(
    "lerp",
    _lerp_rule,
    lambda xp, g, a, b, w, step: g * w,
    lambda xp, g, a, b, w, step: g * (step if xp is ARRAYS else b - a),
)
_NAN_TO_NUM = Row("nan_to_num", lambda xp, g, mask: xp.chosen(mask, g))
