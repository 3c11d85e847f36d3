"""Element-wise activations of exponentials, and others; ``piecewise.py`` has ``relu`` and its relatives."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import core
from ...core import sigmoid, tanh
from ...core.extend import (
    ARRAYS,
    Array,
    Row,
    Tensor,
    as_array,
    expm1_negative,
    inplace,
    keep,
    keep_result,
    log1p_exp,
    operation,
    record,
    records,
)

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "logsigmoid",
    "mish",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanh",
    "tanhshrink",
]

# Klambauer et al. 2017: with these, mean 0 and variance 1 stay the same from layer to layer.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _exponential_rule(xp: Any, g: Any, a: Any, alpha: float, scale: float, rate: float) -> Any:
    # Not from the result, which is -alpha * scale from some point on; and without overflow where a is positive.
    at_zero = alpha * scale * rate
    below = xp.minimum(a, 0.0)
    if rate != 1:
        below = below * rate
    slope = xp.exp(below)
    if at_zero != 1:
        slope = slope * at_zero
    if scale != at_zero:
        slope = slope + xp.cast(a > 0, g.dtype) * (scale - at_zero)
    return g * slope


def _softplus_rule(xp: Any, g: Any, a: Any, out: Any, beta: float, exact: bool) -> Any:
    # The sigmoid; and 1 where the result is the input itself. The exponential may overflow: one over infinity is 0.
    opposite = xp.exp(a * -beta)
    return g / (1 + (opposite if exact else xp.chosen(a != out, opposite)))


def _logsigmoid_rule(xp: Any, g: Any, a: Any) -> Any:
    # As above. A recorded pass calls what has a gradient where the exponential overflows.
    return g / (1 + np.exp(a)) if xp is ARRAYS else g * xp.sigmoid(-a)


def _silu_rule(xp: Any, g: Any, a: Any, forward: Any) -> Any:
    s = forward if xp is ARRAYS else xp.sigmoid(a)
    slope = 1 - s
    slope *= a  # in place: new memory costs more than the arithmetic
    slope += 1
    slope *= s
    slope *= g
    return slope


_EXPONENTIAL = Row("elu", _exponential_rule)
_SOFTPLUS = Row("softplus", _softplus_rule)
_LOGSIGMOID = Row("logsigmoid", _logsigmoid_rule)
_SILU = Row("silu", _silu_rule)


def floats(input: Tensor) -> Array:
    """Return the elements of ``input``, in a type with which NumPy computes.

    Raises:
        TypeError: the input is not floating-point.
    """
    x = input.numpy(force=True)
    if x.dtype.kind == "V":  # bfloat16, which NumPy would widen in the middle
        return x.astype(np.float32)
    if x.dtype.kind != "f":
        raise TypeError(f"the input must be of floating-point numbers, not {x.dtype}; convert it, as by float()")
    return x


def _softplus(x: Array) -> Any:
    # As np.logaddexp(0, x), which takes ten times as long.
    values = log1p_exp(-np.abs(x))
    values += _positive(x)
    return values


def _positive(x: Array) -> Any:
    return np.clip(x, 0, np.inf)  # takes half the time of np.maximum


def _negative(x: Array) -> Any:
    return np.clip(x, -np.inf, 0)


def in_dtype_of(input: Tensor, values: Any) -> Tensor:
    """Return ``values`` as a tensor with the dtype of ``input``."""
    return Tensor(as_array(values).astype(input.dtype, copy=False))


@operation
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ``input`` where it is positive, ``alpha * (exp(input) - 1)`` elsewhere (Clevert et al. 2016).

    Args:
        input: any shape, floating-point.
        alpha: minus the limit at -inf.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is not floating-point.
    """
    return elu_(input, alpha) if inplace else _exponential(input, alpha, 1.0, 1.0)


@operation
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``scale * elu(input, alpha)``, with the constants that keep mean 0 and variance 1 (Klambauer et al. 2017).

    The constants are ``alpha = 1.6733`` and ``scale = 1.0507``, in more digits.

    Args:
        input: any shape, floating-point.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is not floating-point.
    """
    return selu_(input) if inplace else _exponential(input, SELU_ALPHA, SELU_SCALE, 1.0)


@operation
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ``input`` where it is positive, ``alpha * (exp(input / alpha) - 1)`` elsewhere (Barron 2017).

    Its derivative is continuous for every ``alpha``.

    Args:
        input: any shape, floating-point.
        alpha: minus the limit at -inf, not 0.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: ``alpha`` is 0.
    """
    if not alpha:
        raise ValueError("alpha must not be 0")
    return celu_(input, alpha) if inplace else _exponential(input, alpha, 1.0, 1.0 / alpha)


def _exponential(input: Tensor, alpha: float, scale: float, rate: float) -> Tensor:
    x = floats(input)
    # One of the two terms is 0.
    values = expm1_negative(x if rate == 1 else x * rate) if rate > 0 else np.expm1(_negative(x) * rate)
    if alpha * scale != 1:
        values *= alpha * scale
    values += _positive(x) if scale == 1 else _positive(x) * scale
    result = in_dtype_of(input, values)
    if records(input):
        record(_EXPONENTIAL, result, (input,), (keep(input),), alpha, scale, rate)
    return result


@operation
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta * input)) / beta``, without overflow.

    Args:
        input: any shape, floating-point.
        beta: sharpness of the bend at 0.
        threshold: where ``beta * input`` is above it, the result is ``input``.

    Raises:
        TypeError: the input is not floating-point.
    """
    x = floats(input)
    scaled = x if beta == 1 else x * beta
    smooth = _softplus(scaled)
    smooth = smooth if beta == 1 else smooth / beta
    # From some number on, log(1 + exp(x)) is rounded to x; with a beta, x * beta may overflow there.
    exact = threshold == math.inf or (beta == 1 and threshold > -math.log(np.finfo(x.dtype).eps / 4))
    result = in_dtype_of(input, smooth if exact else np.where(scaled > threshold, x, smooth))
    if records(input):
        record(_SOFTPLUS, result, (input,), (keep(input), keep_result(result)), beta, exact)
    return result


@operation
def logsigmoid(input: Tensor) -> Tensor:
    """Return ``log(sigmoid(input))``, precise where the sigmoid is tiny.

    Args:
        input: any shape, floating-point.

    Raises:
        TypeError: the input is not floating-point.
    """
    x = floats(input)
    below = _negative(x)
    below -= log1p_exp(-np.abs(x))
    result = in_dtype_of(input, below)
    return record(_LOGSIGMOID, result, (input,), (keep(input),)) if records(input) else result


@operation
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * sigmoid(input)`` (Hendrycks and Gimpel 2016; also called swish).

    Args:
        input: any shape, floating-point or complex.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is not floating-point or complex.
    """
    if inplace:
        return _silu_(input)
    x = input._array if input.dtype.kind == "c" else floats(input)
    s = ARRAYS.sigmoid(x)
    result = in_dtype_of(input, x * s)
    return record(_SILU, result, (input,), (keep(input),), s) if records(input) else result


@operation
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * tanh(softplus(input))`` (Misra 2019).

    Args:
        input: any shape, floating-point.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is not floating-point.
    """
    return _mish_(input) if inplace else input * tanh(softplus(input))


@operation
def tanhshrink(input: Tensor) -> Tensor:
    """Return ``input - tanh(input)``.

    Args:
        input: any shape; integers become floating-point.
    """
    return input - tanh(input)


@operation
def softsign(input: Tensor) -> Tensor:
    """Return ``input / (1 + abs(input))``.

    Args:
        input: any shape; integers become floating-point.
    """
    return input / (core.abs(input) + 1)


celu_, elu_, selu_ = inplace(celu), inplace(elu), inplace(selu)
_mish_, _silu_ = inplace(mish), inplace(silu)
