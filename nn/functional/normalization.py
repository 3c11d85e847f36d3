"""Normalization to mean 0 and variance 1, over samples, features, groups of channels or instances.

All kinds are two operations: ``standardized`` over some dimensions, then ``affine`` with learned parameters.
"""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import core
from ...core import no_grad
from ...core.extend import (
    ARRAYS,
    Array,
    Row,
    RowBuffers,
    Tensor,
    as_array,
    change,
    keep,
    keep_result,
    operation,
    record,
    records,
    row_dots,
    row_sums,
    wide,
)

__all__ = [
    "group_norm",
    "instance_norm",
    "local_response_norm",
    "rms_norm",
]

Dims = tuple[int, ...]
Rows = tuple[int, int]


def _rule(xp: Any, g: Any, a: Any, out: Any, rows: Rows, eps: float, centred: bool, rate: Any, wide: Any) -> Any:
    size = rows[1]
    if xp is ARRAYS:
        result = _array_rule(xp.reshape(g, rows).astype(wide, copy=False), xp.reshape(out, rows), size, centred, rate)
        return xp.reshape(result, a.shape).astype(a.dtype, copy=False)
    # A recorded pass goes through what the forward pass computed on arrays.
    shape = a.shape
    g, a, out = (xp.reshape(each, rows) for each in (g, a, out))
    mean = xp.sum_dims(a, (1,), True) / size if centred else 0.0
    rate = (xp.sum_dims((a - mean) * (a - mean), (1,), True) / size + eps) ** -0.5
    projection = xp.sum_dims(g * out, (1,), True) / size
    result = (g - xp.sum_dims(g, (1,), True) / size - out * projection) if centred else g - out * projection
    return xp.reshape(result * rate, shape)


def _array_rule(g: Array, out: Array, size: int, centred: bool, rate: Array) -> Array:
    with RowBuffers(g):
        result: Array = out * (row_dots(g, out) / -size)
        result += g
        if centred:
            result -= row_sums(g, 1 / size)
        result *= rate
    return result


def _total(dims: Dims, x: Array, y: Array | None = None) -> Array:
    """Return the sum of ``x``, or of ``x * y``, over ``dims``, which are kept with length 1.

    ``dims`` end with the last dimension, so that long runs of memory are added up one after the other.
    """
    x = wide(x)
    shape = tuple(1 if axis in dims else length for axis, length in enumerate(x.shape))
    first = len(x.shape)
    while first - 1 in dims:
        first -= 1
    runs = (*x.shape[:first], math.prod(x.shape[first:]))
    flat = x.reshape(runs)
    sums = row_sums(flat) if y is None else row_dots(flat, wide(y).reshape(runs))
    return as_array(sums[..., 0].sum(axis=tuple(dim for dim in dims if dim < first))).reshape(shape)


def _to_shape(g: Array, a: Array | None, shape: Dims) -> Array:
    """Return the sum of ``g``, or of ``g * a``, down to ``shape``: channels, or the last dimensions."""
    g, a = wide(g), None if a is None else wide(a)
    if shape == g.shape[-len(shape) :]:
        rows = (-1 if g.size else 0, math.prod(shape))
        if a is None:
            return g.reshape(rows).sum(axis=0)
        return as_array(np.einsum("ij,ij->j", g.reshape(rows), a.reshape(rows)))
    return _total((0, *range(2, g.ndim)), g, a)


def _affine_weight(xp: Any, g: Any, a: Any, weight: Any, shape: Dims, to: Dims, dtype: Any) -> Any:
    if xp is ARRAYS:
        return _to_shape(g, a, shape).reshape(to).astype(dtype, copy=False)
    return xp.reshape(xp.fit(g * a, shape, dtype), to)


def _affine_bias(xp: Any, g: Any, a: Any, weight: Any, shape: Dims, to: Dims, dtype: Any) -> Any:
    if xp is ARRAYS:
        return _to_shape(g, None, shape).reshape(to).astype(dtype, copy=False)
    return xp.reshape(xp.fit(g, shape, dtype), to)


def _affine_input(xp: Any, g: Any, a: Any, weight: Any, shape: Dims, to: Dims, dtype: Any) -> Any:
    return g if weight is None else xp.cast(g * xp.reshape(weight, shape), g.dtype)


_STANDARDIZE = Row("standardize", _rule)
_AFFINE = Row("affine", _affine_input, _affine_weight, _affine_bias)


def shared_pull(gradients: Callable[..., list[Any]], *rules: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Return the ``pull`` of a row that has one function for arrays and a rule for each input for recorded passes.

    On arrays, ``gradients(grad, edges, *arguments)`` computes all, because they share intermediate results.
    """

    def pull(xp: Any, grad: Any, arguments: Sequence[Any], edges: Sequence[Any]) -> list[Any]:
        if xp is ARRAYS:
            return gradients(grad, edges, *arguments)
        return [None if edge is None else rule(xp, grad, *arguments) for rule, edge in zip(rules, edges)]

    return pull


def standardized(input: Tensor, rows: Rows, eps: float, centred: bool = True) -> tuple[Tensor, Array, Array]:
    """Return ``(input - mean) / sqrt(var + eps)``, the mean and the biased variance, of parts that follow one another.

    Args:
        input: any shape, floating-point.
        rows: how many parts it has, and the length of each.
        eps: added to the variance.
        centred: if false, the mean is left out, and the variance is the mean of the squares.

    Returns:
        The input's shape; mean and variance have shape (parts, 1).

    Raises:
        TypeError: the input is not floating-point.
    """
    given = input.numpy(force=True)
    if not input.is_floating_point():
        raise TypeError(f"the input must be of floating-point numbers, not {given.dtype}")
    x, size = wide(given).reshape(rows), rows[1]
    with np.errstate(invalid="ignore", divide="ignore"), RowBuffers(x):
        mean = np.true_divide(row_sums(x), size, dtype=x.dtype) if centred else np.zeros((), x.dtype)
        out = x - mean if centred else x
        var = np.true_divide(row_dots(out, out), size, dtype=x.dtype)
        rate = 1 / np.sqrt(var + x.dtype.type(eps))
        out = np.multiply(out, rate, out=out) if centred else out * rate
    result = Tensor(out.reshape(given.shape).astype(given.dtype, copy=False))
    if records(input):
        saved = (keep(input), keep_result(result))
        record(_STANDARDIZE, result, (input,), saved, rows, eps, centred, rate, x.dtype)
    return result, mean, var


def affine(input: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Dims) -> Tensor:
    """Return ``input * weight + bias``; of the input's dtype if that has 16 bits, whatever those of the others.

    Args:
        input: any shape.
        weight, bias: ``None``, or reshaped to ``shape`` first.
        shape: can be broadcast to the input's.
    """
    if weight is None and bias is None:
        return input
    given = input.numpy(force=True)
    out = wide(given)
    if weight is not None:
        out = out * weight.numpy(force=True).reshape(shape)
    if bias is not None:
        offset = bias.numpy(force=True).reshape(shape)
        out = out + offset if weight is None or out.dtype != offset.dtype else np.add(out, offset, out=out)
    result = Tensor(out.astype(given.dtype) if given.dtype.itemsize == 2 else out)
    inputs = (input, weight, bias)
    if records(*(tensor for tensor in inputs if tensor is not None)):
        parameter = bias if weight is None else weight
        assert parameter is not None
        saved = (keep(input), None if weight is None else keep(weight))
        record(_AFFINE, result, inputs, saved, shape, parameter.shape, parameter.dtype)
    return result


@operation
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Return ``input / sqrt(mean(input ** 2) + eps) * weight`` over the last dimensions (Zhang and Sennrich 2019).

    Args:
        input: shape (..., *normalized_shape), floating-point or complex.
        normalized_shape: lengths of the last dimensions, over which the mean is taken.
        weight: shape ``normalized_shape``.
        eps: added to the mean square; ``finfo().eps`` if ``None``: the dtype's, but of float32 if that has 16 bits.

    Returns:
        The input's shape.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: the input's last dimensions are others, or the weight has another shape.
    """
    shape, dims, rows = last_dims(input, normalized_shape, weight, None)
    if eps is None:
        eps = core.finfo(core.float64 if input.dtype in (core.float64, core.complex128) else core.float32).eps
    if input.is_complex():
        result = input * (core.mean(input * input, dims, True) + eps) ** -0.5
        return result if weight is None else result * weight
    result = standardized(input, rows, eps, centred=False)[0]
    if weight is None:
        return result
    return affine(result.to(core.promote_types(input.dtype, weight.dtype)), weight, None, shape)


@operation
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Return ``(input - mean) / sqrt(var + eps) * weight + bias`` for each channel of each sample (Ulyanov et al. 2016).

    Args:
        input: shape (N, C, ...), floating-point.
        running_mean, running_var: shape (C,). With ``use_input_stats`` they are updated in place, as by ``batch_norm``.
        weight, bias: shape (C,).
        use_input_stats: whether the mean and the biased variance are those of the input, not the running ones.
        momentum: share of the new value in the running ones.
        eps: added to the variance.

    Returns:
        The input's shape.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: the shapes do not fit, there are no running values to use, or only one value for each channel of a
            sample.
    """
    check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ValueError("without use_input_stats=True, running_mean and running_var are needed")
        return by_running_statistics(input, running_mean, running_var, weight, bias, eps)
    count = math.prod(input.shape[2:])
    if count == 1 or input.ndim < 3:
        raise ValueError(f"a sample needs more than one value for each channel, and the input has shape {input.shape}")
    per_sample = input.shape[:2]
    result, mean, var = standardized(input, (math.prod(per_sample), count), eps)
    update_running(running_mean, mean.reshape(per_sample).mean(axis=0), momentum)
    update_running(running_var, var.reshape(per_sample).mean(axis=0) * (count / max(count - 1, 1)), momentum)
    return affine(result, weight, bias, (input.shape[1], *(1,) * (input.ndim - 2)))


@operation
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """Return ``(input - mean) / sqrt(var + eps) * weight + bias`` for each group of channels of each sample (Wu and He 2018).

    Args:
        input: shape (N, C, ...), floating-point.
        num_groups: number of groups of channels that follow one another.
        weight, bias: shape (C,).
        eps: added to the biased variance.

    Returns:
        The input's shape.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: the groups do not divide the channels, or the shapes do not fit.
    """
    check_channels(input, weight=weight, bias=bias)
    count, channels = input.shape[:2]
    if num_groups < 1 or channels % num_groups:
        raise ValueError(f"num_groups={num_groups} must divide the {channels} channels of the input")
    rows = (count * num_groups, channels // num_groups * math.prod(input.shape[2:]))
    result = standardized(input, rows, eps)[0]
    return affine(result, weight, bias, (channels, *(1,) * (input.ndim - 2)))


@operation
def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Return ``input / (k + alpha * mean of the squares of size neighbouring channels) ** beta`` (Krizhevsky et al. 2012).

    Args:
        input: shape (N, C, ...), floating-point.
        size: number of channels of each mean, centred at the channel itself; channels outside count as 0.
        alpha, beta, k: see the formula.

    Returns:
        The input's shape.

    Raises:
        ValueError: the input has fewer than three dimensions.
    """
    if input.ndim < 3:
        raise ValueError(f"the input must have shape (N, C, ...) with at least 3 dimensions, not {input.shape}")
    if not input.numel():
        return input
    planes = (input * input).reshape(input.shape[0], 1, input.shape[1], -1)
    means = core.avg_pool2d(planes, (size, 1), stride=1, padding=(size // 2, 0))[:, :, : input.shape[1]]
    return input / (means.reshape(input.shape) * alpha + k) ** beta


def by_running_statistics(
    input: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Return ``(input - mean) / sqrt(var + eps) * weight + bias`` for each channel.

    Args:
        input: shape (N, C, ...).
        mean, var: running statistics, shape (C,).
        weight, bias: parameters of shape (C,), or ``None``.
        eps: added to the variance.
    """
    rate = (var + eps) ** -0.5
    scale = rate if weight is None else weight * rate
    shift = -mean * scale if bias is None else bias - mean * scale
    return affine(input, scale, shift, (input.shape[1], *(1,) * (input.ndim - 2)))


def update_running(running: Tensor | None, value: Array, momentum: float) -> None:
    """Move a running statistic towards ``value``, in place: ``(1 - momentum) * running + momentum * value``.

    Args:
        running: the statistic, shape (C,); ``None`` if there is none.
        value: the new value, shape (C,).
        momentum: share of the new value.
    """
    if running is not None:
        change(move_running, running, value, momentum)


@no_grad()
def move_running(running: Tensor, value: Array, momentum: float) -> None:
    """Move a running statistic as ``update_running`` does: one call of a plan.

    Args:
        running: the statistic.
        value: the new value.
        momentum: share of the new value.
    """
    running.mul_(1 - momentum).add_(Tensor(value.astype(running.dtype) * momentum))


def last_dims(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None
) -> tuple[Dims, Dims, Rows]:
    """Return ``normalized_shape`` as a tuple, the numbers of those dimensions, and the shape of the input as rows of them.

    Args:
        input: shape (..., *normalized_shape).
        normalized_shape: the lengths of its last dimensions.
        weight, bias: parameters of that shape, or ``None``.

    Raises:
        ValueError: the input's last dimensions are others, or a parameter has another shape.
    """
    shape = tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ValueError(
            f"the input's last dimensions must be normalized_shape {shape}, and its shape is {input.shape}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != shape:
            raise ValueError(f"the {name} must have the shape {shape}, not {parameter.shape}")
    whole = input.shape
    first = len(whole) - len(shape)
    return shape, tuple(range(first, len(whole))), (math.prod(whole[:first]), math.prod(shape))


def check_channels(input: Tensor, **parameters: Tensor | None) -> None:
    """Raise unless the input has channels, and each parameter one value for each.

    Raises:
        ValueError: it has not.
    """
    if input.ndim < 2:
        raise ValueError(f"the input must have shape (N, C, ...), not {input.shape}")
    for name, parameter in parameters.items():
        if parameter is not None and parameter.shape != (input.shape[1],):
            raise ValueError(
                f"{name} must have shape ({input.shape[1]},), for the channels of an input of shape {input.shape}, "
                f"not {parameter.shape}"
            )
