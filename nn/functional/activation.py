"""Element-wise activations."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import core
from ...core import sigmoid, tanh
from ...core.extend import Array, Row, Tensor, inplace, keep, keep_result, operation, record, records

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

# Klambauer et al. 2017: with these, mean 0 and variance 1 reproduce themselves from layer to layer.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _leaky_rule(xp: Any, g: Any, a: Any, slope: float) -> Any:
    # Arithmetic with ones and zeros: np.where costs several times as much where signs vary.
    return g * (xp.cast(a > 0, g.dtype) * (1 - slope) + slope)


def _exponential_rule(xp: Any, g: Any, a: Any, out: Any, alpha: float, scale: float, rate: float) -> Any:
    # By the result: exp(a) would overflow where it does not count.
    below = (xp.minimum(out, 0.0) + alpha * scale) * rate
    return g * (below + xp.cast(a > 0, g.dtype) * (scale - alpha * scale * rate))


def _silu_rule(xp: Any, g: Any, a: Any, forward: Any) -> Any:
    s = forward if isinstance(a, np.ndarray) else xp.sigmoid(a)
    return g * (s * (1 + a * (1 - s)))


def _hardswish_rule(xp: Any, g: Any, a: Any) -> Any:
    return xp.chosen(~(a < -3), g * xp.where(a <= 3, a / 3 + 0.5, 1.0))


_LEAKY = Row("leaky_relu", _leaky_rule)
_EXPONENTIAL = Row("elu", _exponential_rule)
# The sigmoid; and 1 where the result is the input itself. The exponential may overflow: one over infinity is 0.
_SOFTPLUS = Row("softplus", lambda xp, g, a, out, beta: g / (1 + xp.exp(a * -beta) * (a != out)))
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


def _as(input: Tensor, values: Any) -> Tensor:
    """``values`` in the dtype of ``input``."""
    return Tensor(np.asarray(values).astype(input.dtype, copy=False))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; its gradient at 0 is 0."""
    return input.relu_() if inplace else core.relu(input)


def relu_(input: Tensor) -> Tensor:
    """``relu`` in place."""
    return input.relu_()


@operation
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``input`` where it is positive, ``negative_slope * input`` elsewhere."""
    if inplace:
        return leaky_relu_(input, negative_slope)
    x = _floats(input)
    within = 0 < negative_slope <= 1
    result = _as(input, np.maximum(x, x * negative_slope) if within else np.where(x > 0, x, x * negative_slope))
    return record(_LEAKY, result, (input,), (keep(input),), negative_slope) if records(input) else result


@operation
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``leaky_relu`` with a learned slope: one for all, or one for each channel (dimension 1).

    Raises:
        ValueError: there are not as many slopes as channels.
    """
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.numel() not in (1, channels):
        raise ValueError(f"the weight must have 1 slope or {channels}, one for each channel, not shape {weight.shape}")
    slope = weight.reshape(-1, *(1,) * (input.ndim - 2)) if weight.numel() > 1 else weight.reshape((1,) * input.ndim)
    return _with_slope(input, slope)


def _with_slope(input: Tensor, slope: Tensor) -> Tensor:
    # Clamped, so that an infinite input does not make the slope's gradient nan where it does not count.
    return core.where(input > 0, input, slope * input.clamp(max=0))


@operation
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """``leaky_relu`` with slopes drawn from [``lower``, ``upper``) while training, and their mean otherwise.

    Raises:
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
    """``input`` where it is positive, ``alpha * (exp(input) - 1)`` elsewhere."""
    return elu_(input, alpha) if inplace else _exponential(input, alpha, 1.0, 1.0)


@operation
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``elu`` with the two constants that keep mean 0 and variance 1."""
    return selu_(input) if inplace else _exponential(input, SELU_ALPHA, SELU_SCALE, 1.0)


@operation
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` where it is positive, ``alpha * (exp(input / alpha) - 1)`` elsewhere: smooth for every ``alpha``.

    Raises:
        ValueError: ``alpha`` is 0.
    """
    if not alpha:
        raise ValueError("alpha must not be 0")
    return celu_(input, alpha) if inplace else _exponential(input, alpha, 1.0, 1.0 / alpha)


def _exponential(input: Tensor, alpha: float, scale: float, rate: float) -> Tensor:
    x = _floats(input)
    # One of the two terms is 0.
    result = _as(input, np.maximum(x, 0) * scale + np.expm1(np.minimum(x, 0) * rate) * (alpha * scale))
    if records(input):
        record(_EXPONENTIAL, result, (input,), (keep(input), keep_result(result)), alpha, scale, rate)
    return result


@operation
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, without overflow; ``input`` itself where ``beta * input > threshold``."""
    x = _floats(input)
    scaled = x * beta
    # As np.logaddexp(0, scaled), which takes ten times as long.
    smooth = (np.maximum(scaled, 0) + np.log1p(np.exp(-np.abs(scaled)))) / beta
    beyond = scaled > threshold
    result = _as(input, np.where(beyond, x, smooth) if beyond.any() else smooth)
    return record(_SOFTPLUS, result, (input,), (keep(input), keep_result(result)), beta) if records(input) else result


@operation
def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``, precise where that is tiny."""
    return -softplus(-input, threshold=math.inf)


@operation
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``."""
    if inplace:
        return _silu_(input)
    x = _floats(input)
    s = 0.5 * np.tanh(0.5 * x) + 0.5
    result = _as(input, x * s)
    return record(_SILU, result, (input,), (keep(input),), s) if records(input) else result


@operation
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return _mish_(input) if inplace else input * tanh(softplus(input))


@operation
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``input``, but not below ``min_val`` nor above ``max_val``; the gradient flows strictly between them."""
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
    """``relu``, but not above 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


@operation
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``relu6(input + 3) / 6``."""
    return _hardsigmoid_(input) if inplace else relu6(input + 3) / 6


@operation
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * relu6(input + 3) / 6``."""
    if inplace:
        return _hardswish_(input)
    x = _floats(input)
    result = _as(input, x * np.clip(x + 3, 0, 6) / 6)
    return record(_HARDSWISH, result, (input,), (keep(input),)) if records(input) else result


@operation
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 within ``lambd`` of 0, ``input`` elsewhere."""
    return core.where(core.abs(input) <= lambd, Tensor(np.zeros((), input.dtype)), input)


@operation
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input`` moved towards 0 by ``lambd``, and 0 within that.

    Raises:
        ValueError: ``lambd`` is negative.
    """
    if lambd < 0:
        raise ValueError(f"lambd must not be negative, and you gave {lambd}")
    return core.sign(input) * core.relu(core.abs(input) - lambd)


@operation
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - tanh(input)


@operation
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + abs(input))``."""
    return input / (core.abs(input) + 1)


@operation
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``input`` where it is above ``threshold``, ``value`` elsewhere."""
    if inplace:
        return threshold_(input, threshold, value)
    return core.where(input <= threshold, Tensor(np.asarray(value).astype(input.dtype)), input)


celu_, elu_, selu_ = inplace(celu), inplace(elu), inplace(selu)
hardtanh_, leaky_relu_, rrelu_, threshold_ = inplace(hardtanh), inplace(leaky_relu), inplace(rrelu), inplace(threshold)
_hardsigmoid_, _hardswish_, _mish_, _silu_ = inplace(hardsigmoid), inplace(hardswish), inplace(mish), inplace(silu)
