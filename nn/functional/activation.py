"""Element-wise activations."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import Any

import numpy as np

from ... import core
from ...core import sigmoid, tanh
from ...core.extend import ARRAYS, Array, Row, Tensor, inplace, keep, keep_result, operation, record, records

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]

# Klambauer et al. 2017: with these, mean 0 and variance 1 stay the same from layer to layer.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _leaky_rule(xp: Any, g: Any, a: Any, slope: float) -> Any:
    # Arithmetic with ones and zeros: a choice costs several times as much where signs vary.
    factor = xp.cast(a > 0, g.dtype)
    factor *= 1 - slope
    factor += slope
    return g * factor


def _exponential_rule(xp: Any, g: Any, a: Any, alpha: float, scale: float, rate: float) -> Any:
    # Not from the result, which is -alpha * scale from some point on; and without overflow where a is positive.
    at_zero = alpha * scale * rate
    below = xp.exp(xp.minimum(a, 0.0) * rate) * at_zero
    if scale != at_zero:
        below = below + xp.cast(a > 0, g.dtype) * (scale - at_zero)
    return g * below


def _silu_rule(xp: Any, g: Any, a: Any, forward: Any) -> Any:
    s = forward if isinstance(a, np.ndarray) else xp.sigmoid(a)
    return g * (s * (1 + a * (1 - s)))


def _hardswish_rule(xp: Any, g: Any, a: Any) -> Any:
    # The slope as far as it is linear, by the masks of both ends, and 1 behind them.
    bends = a < 3
    slope = xp.chosen(bends, a * (1 / 3) + 0.5) + xp.cast(~bends, g.dtype)
    return xp.chosen(~(a <= -3), g * slope)


_LEAKY = Row("leaky_relu", _leaky_rule)
_EXPONENTIAL = Row("elu", _exponential_rule)
# The sigmoid; and 1 where the result is the input itself. The exponential may overflow: one over infinity is 0.
_SOFTPLUS = Row("softplus", lambda xp, g, a, out, beta: g / (1 + xp.exp(a * -beta) * (a != out)))
_LOGSIGMOID = Row("logsigmoid", lambda xp, g, a: g * xp.sigmoid(-a))
_HARDTANH = Row("hardtanh", lambda xp, g, a, low, high: xp.chosen(~((a <= low) | (a >= high)), g))  # nan lets it pass
_HARDSWISH = Row("hardswish", _hardswish_rule)
_SILU = Row("silu", _silu_rule)


def _floats(input: Tensor) -> Array:
    x = input.numpy(force=True)
    if x.dtype.kind == "V":  # bfloat16, which NumPy would widen in the middle
        return x.astype(np.float32)
    if x.dtype.kind != "f":
        raise TypeError(f"the input must be of floating-point numbers, not {x.dtype}; convert it, as by float()")
    return x


def _softplus(x: Array) -> Any:
    # As np.logaddexp(0, x), which takes ten times as long.
    return _positive(x) + np.log1p(np.exp(-np.abs(x)))


def _positive(x: Array) -> Any:
    return np.clip(x, 0, np.inf)  # takes half the time of np.maximum


def _negative(x: Array) -> Any:
    return np.clip(x, -np.inf, 0)


def _as(input: Tensor, values: Any) -> Tensor:
    """``values`` in the dtype of ``input``."""
    return Tensor(np.asarray(values).astype(input.dtype, copy=False))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(input, 0)``; the gradient at 0 is 0.

    Args:
        input: any shape, any real dtype.
        inplace: whether to write into ``input``.
    """
    return input.relu_() if inplace else core.relu(input)


def relu_(input: Tensor) -> Tensor:
    """Write ``max(input, 0)`` into ``input``."""
    return input.relu_()


@operation
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return ``input`` where it is positive, ``negative_slope * input`` elsewhere.

    Args:
        input: any shape, floating-point.
        negative_slope: slope below 0.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is not floating-point.
    """
    if inplace:
        return leaky_relu_(input, negative_slope)
    x = _floats(input)
    within = 0 < negative_slope <= 1
    result = _as(input, np.maximum(x, x * negative_slope) if within else np.where(x > 0, x, x * negative_slope))
    return record(_LEAKY, result, (input,), (keep(input),), negative_slope) if records(input) else result


@operation
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return ``input`` where it is positive, ``weight * input`` elsewhere, with a learned slope (He et al. 2015).

    Args:
        input: shape (N, C, ...), or any other for one slope; floating-point.
        weight: slope below 0: one element, or shape (C,), one for each channel (dimension 1).

    Raises:
        ValueError: the weight has more than one dimension, or not as many slopes as the input has channels.
    """
    if weight.ndim > 1:
        raise ValueError(f"the weight must be a vector or 0-d, and has shape {weight.shape}")
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.numel() not in (1, channels):
        raise ValueError(f"the weight must have 1 slope or {channels}, one for each channel, not shape {weight.shape}")
    slope = weight.reshape(-1, *(1,) * (input.ndim - 2)) if weight.numel() > 1 else weight.reshape((1,) * input.ndim)
    return _with_slope(input, slope)


def _with_slope(input: Tensor, slope: Tensor) -> Tensor:
    # Clamped, so that an infinite positive input does not make the slope's gradient nan.
    return core.where(input > 0, input, slope * input.clamp(max=0))


@operation
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return ``leaky_relu`` with random slopes while training, and with their mean otherwise (Xu et al. 2015).

    Args:
        input: any shape, floating-point.
        lower, upper: bounds of the uniform distribution of the slopes, one for each element.
        training: whether slopes are drawn.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: ``lower`` is above ``upper``.
    """
    if lower > upper:
        raise ValueError(f"lower must not be above upper, and you gave {lower} and {upper}")
    if inplace:
        return rrelu_(input, lower, upper, training)
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slopes = core.rand_like(input) * (upper - lower) + lower
    return _with_slope(input, slopes)


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
    x = _floats(input)
    # One of the two terms is 0.
    values = np.expm1(_negative(x) if rate == 1 else _negative(x) * rate) * (alpha * scale)
    values += _positive(x) if scale == 1 else _positive(x) * scale
    result = _as(input, values)
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
    x = _floats(input)
    scaled = x if beta == 1 else x * beta
    smooth = _softplus(scaled)
    smooth = smooth if beta == 1 else smooth / beta
    beyond = scaled > threshold
    result = _as(input, np.where(beyond, x, smooth) if beyond.any() else smooth)
    return record(_SOFTPLUS, result, (input,), (keep(input), keep_result(result)), beta) if records(input) else result


@operation
def logsigmoid(input: Tensor) -> Tensor:
    """Return ``log(sigmoid(input))``, precise where the sigmoid is tiny.

    Args:
        input: any shape, floating-point.

    Raises:
        TypeError: the input is not floating-point.
    """
    result = _as(input, -_softplus(-_floats(input)))
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
    x = input._array if input.dtype.kind == "c" else _floats(input)
    s = ARRAYS.sigmoid(x)
    result = _as(input, x * s)
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
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ``min(max(input, min_val), max_val)``; the gradient is 1 strictly between the bounds, and 0 elsewhere.

    Args:
        input: any shape, of integers or floating-point.
        min_val, max_val: the bounds.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is of booleans or complex numbers.
        ValueError: ``min_val`` is above ``max_val``.
    """
    if min_val > max_val:
        raise ValueError(f"min_val must not be above max_val, and you gave {min_val} and {max_val}")
    if inplace:
        return hardtanh_(input, min_val, max_val)
    x = input.numpy(force=True)
    x = x if x.dtype.kind in "iu" else _floats(input)
    result = _as(input, np.clip(x, _bound(x, min_val), _bound(x, max_val)))
    return record(_HARDTANH, result, (input,), (keep(input),), min_val, max_val) if records(input) else result


def _bound(x: Array, bound: float) -> float:
    return int(bound) if x.dtype.kind in "iu" else bound


@operation
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``min(max(input, 0), 6)``.

    Args:
        input: any shape, of integers or floating-point.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is of booleans or complex numbers.
    """
    return hardtanh(input, 0.0, 6.0, inplace)


@operation
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``relu6(input + 3) / 6``.

    Args:
        input: any shape, floating-point.
        inplace: whether to write into ``input``.
    """
    return _hardsigmoid_(input) if inplace else relu6(input + 3) / 6


@operation
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * relu6(input + 3) / 6`` (Howard et al. 2019).

    Args:
        input: any shape, floating-point.
        inplace: whether to write into ``input``.

    Raises:
        TypeError: the input is not floating-point.
    """
    if inplace:
        return _hardswish_(input)
    x = _floats(input)
    result = _as(input, x * np.clip(x + 3, 0, 6) / 6)
    return record(_HARDSWISH, result, (input,), (keep(input),)) if records(input) else result


@operation
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return 0 where ``abs(input) <= lambd``, ``input`` elsewhere.

    Args:
        input: any shape, any real dtype.
        lambd: the bound.
    """
    return core.where(core.abs(input) <= lambd, Tensor(np.zeros((), input.dtype)), input)


@operation
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return ``sign(input) * max(abs(input) - lambd, 0)``.

    Args:
        input: any shape, any real dtype.
        lambd: the bound, not negative.

    Raises:
        ValueError: ``lambd`` is negative.
    """
    if lambd < 0:
        raise ValueError(f"lambd must not be negative, and you gave {lambd}")
    return core.sign(input) * core.relu(core.abs(input) - lambd)


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


@operation
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return ``input`` where it is above ``threshold``, ``value`` elsewhere.

    Args:
        input: any shape, any real dtype.
        threshold: the bound.
        value: number for the other elements, converted to the input's dtype.
        inplace: whether to write into ``input``.
    """
    if inplace:
        return threshold_(input, threshold, value)
    return core.where(input <= threshold, Tensor(np.asarray(value).astype(input.dtype)), input)


celu_, elu_, selu_ = inplace(celu), inplace(elu), inplace(selu)
hardtanh_, leaky_relu_, rrelu_, threshold_ = inplace(hardtanh), inplace(leaky_relu), inplace(rrelu), inplace(threshold)
_hardsigmoid_, _hardswish_, _mish_, _silu_ = inplace(hardsigmoid), inplace(hardswish), inplace(mish), inplace(silu)
