"""Element-wise activations that are linear or quadratic in pieces: ``relu`` and its relatives."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import Any

import numpy as np

from ... import core
from ...core.extend import ARRAYS, Array, Row, Tensor, blockwise, inplace, keep, operation, record, records, wide
from .activation import floats, in_dtype_of

__all__ = [
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "softshrink",
    "threshold",
    "threshold_",
]


def _leaky_rule(xp: Any, g: Any, a: Any, slope: float) -> Any:
    # Arithmetic with ones and zeros: a choice costs several times as much where signs vary.
    factor = xp.cast(a > 0, g.dtype)
    factor *= 1 - slope
    factor += slope
    factor *= g
    return factor


def _hardsigmoid_rule(xp: Any, g: Any, a: Any) -> Any:
    chosen = xp.chosen((a > -3) & (a < 3), g)  # nan is outside, as in PyTorch
    if xp is not ARRAYS or not chosen.ndim:
        return chosen * (1 / 6)
    chosen *= 1 / 6
    return chosen


def _hardswish_rule(xp: Any, g: Any, a: Any) -> Any:
    if xp is ARRAYS:
        return _hardswish_array_rule(g, a)
    # The slope as far as it is linear, by the masks of both ends, and 1 behind them.
    bends = a < 3
    slope = xp.chosen(bends, a * (1 / 3) + 0.5) + xp.cast(~bends, g.dtype)
    return xp.chosen(~(a <= -3), g * slope)


@blockwise
def _hardswish_array_rule(g: Array, a: Array) -> Any:
    # Of a third of the input, clipped to -1 and 1, the whole part is not 0 at the ends alone: there the slope is 0 or 1.
    slope = wide(a).clip(-3, 3)
    slope *= 1 / 3
    jump = np.trunc(slope)
    jump *= 0.5
    slope -= jump
    slope += 0.5
    slope *= g
    slope = slope.astype(g.dtype, copy=False)
    return ARRAYS.chosen(~(a <= -3), slope, out=slope if slope.ndim else None)  # 0 times infinity would be nan


_LEAKY = Row("leaky_relu", _leaky_rule)
_HARDTANH = Row("hardtanh", lambda xp, g, a, low, high: xp.chosen(~((a <= low) | (a >= high)), g))  # nan lets it pass
_HARDSIGMOID = Row("hardsigmoid", _hardsigmoid_rule)
_HARDSWISH = Row("hardswish", _hardswish_rule)


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
    x = floats(input)
    within = 0 < negative_slope <= 1
    result = in_dtype_of(input, np.maximum(x, x * negative_slope) if within else np.where(x > 0, x, x * negative_slope))
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
    x = x if x.dtype.kind in "iu" else floats(input)
    result = in_dtype_of(input, np.clip(x, _bound(x, min_val), _bound(x, max_val)))
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

    Raises:
        TypeError: the input is not floating-point.
    """
    if inplace:
        return _hardsigmoid_(input)
    values = _six_sigmoids(floats(input))
    values *= 1 / 6
    result = in_dtype_of(input, values)
    return record(_HARDSIGMOID, result, (input,), (keep(input),)) if records(input) else result


def _hardswish_array(x: Array) -> Array:
    values = _six_sigmoids(x)
    values *= 1 / 6  # in float32 and float64, 6 times that is 1, so large numbers stay as they are
    values *= x
    return values


def _six_sigmoids(x: Array) -> Array:
    values = x + 3
    return np.clip(values, 0, 6, out=values if values.ndim else None)


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
    result = in_dtype_of(input, _hardswish_array(floats(input)))
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


hardtanh_, leaky_relu_, rrelu_, threshold_ = inplace(hardtanh), inplace(leaky_relu), inplace(rrelu), inplace(threshold)
_hardsigmoid_, _hardswish_ = inplace(hardsigmoid), inplace(hardswish)
