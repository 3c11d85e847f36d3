"""``batch_norm``: while training, one operation that goes over a few samples at a time, so that they stay in the cache.

New memory of the whole input's size costs more than the arithmetic on it, so there is none but for results.
"""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.extend import Array, Row, Tensor, as_array, keep, operation, record, records, row_dots, row_sums
from .normalization import by_running_statistics, check_channels, shared_pull, update_running

__all__ = ["batch_norm"]

SHORT = 1024  # plane
CACHE = 1 << 18  # bytes of the input that are worked on at once


@operation
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Return ``(input - mean) / sqrt(var + eps) * weight + bias`` for each channel (Ioffe and Szegedy 2015).

    While training, ``mean`` and the biased ``var`` are those of all samples, otherwise ``running_mean`` and
    ``running_var``.

    Args:
        input: shape (N, C) or (N, C, ...), floating-point.
        running_mean, running_var: shape (C,). While training they are updated in place: ``new = (1 - momentum) * old +
            momentum * value``, with the unbiased variance.
        weight, bias: shape (C,).
        training: whether the samples' mean and variance are used.
        momentum: share of the new value in the running ones.
        eps: added to the variance.

    Returns:
        The input's shape and dtype.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: the shapes do not fit, there are no running values to use, or only one value for each channel.
    """
    if input.ndim == 1 and not input.numel():
        return input.clone()  # as PyTorch does
    check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("without training=True, running_mean and running_var are needed")
        return by_running_statistics(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // max(input.shape[1], 1)
    if count == 1:
        raise ValueError(f"training needs more than one value for each channel, and the input has shape {input.shape}")
    if not input.is_floating_point():
        raise TypeError(f"the input must be of floating-point numbers, not {input.dtype}")
    result, mean, var = _standardized(input, weight, bias, count or 1, eps)
    if count:  # without samples there are no statistics
        update_running(running_mean, mean, momentum)
        update_running(running_var, var * (count / max(count - 1, 1)), momentum)
    return result


def _standardized(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, count: int, eps: float
) -> tuple[Tensor, Array, Array]:
    x = _planes(input.numpy(force=True))
    wide = np.promote_types(x.dtype, np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = _totals(x, wide) / wide.type(count)
        middle = _spread(mean, x)
        var = _sums((x[part] - middle for part in _parts(x)), mean)
        var /= wide.type(count)
        rate = 1 / np.sqrt(var + wide.type(eps))
    scale = rate if weight is None else rate * weight.numpy(force=True)
    out, factor = np.empty_like(x), _spread(scale, x)
    offset = None if bias is None else _spread(bias.numpy(force=True), x)
    for part in _parts(x):
        values = x[part] - middle
        if offset is None:
            np.multiply(values, factor, out=out[part], casting="unsafe")
        else:
            values *= factor
            np.add(values, offset, out=out[part], casting="unsafe")
    result = Tensor(out.reshape(input.shape))
    inputs = [tensor for tensor in (input, weight, bias) if tensor is not None]
    if records(*inputs):
        saved = (keep(input), None if weight is None else keep(weight))
        record(_BATCH_NORM, result, (input, weight, bias), saved, count, eps, mean, rate)
    return result, mean, var


def _planes(x: Array) -> Array:
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


def _spread(values: Array, x: Array) -> Array:
    """Return a number for each channel, to be broadcast with ``x``; over short planes NumPy is faster with whole samples."""
    length = x.shape[2]
    return values[:, None] if length > SHORT else np.repeat(values, length).reshape(-1, length)


def _totals(x: Array, dtype: Any) -> Array:
    totals = row_sums(x.astype(dtype, copy=False)).sum(axis=(0, 2))
    return totals if type(totals) is np.ndarray else as_array(totals)


def _parts(x: Array) -> Iterator[slice]:
    step = max(1, CACHE // max(x.itemsize * x.shape[1] * x.shape[2], 1))
    return (slice(start, start + step) for start in range(0, len(x), step))


def _sums(parts: Iterator[Array], like: Array, others: Iterator[Array] | None = None) -> Array:
    """Return for each channel the sum of the squares of all parts, or of their products with ``others``."""
    result = np.zeros_like(like)
    for part in parts:
        result += row_dots(part, part if others is None else next(others)).sum(axis=(0, 2))
    return result


def _gradients(
    grad: Array, edges: Sequence[Any], a: Array, weight: Array | None, count: int, eps: float, mean: Array, rate: Array
) -> list[Any]:
    x, planes = _planes(a), _planes(grad)
    total, middle = _totals(planes, mean.dtype), _spread(mean, x)
    projection = _sums((x[part] - middle for part in _parts(x)), mean, (planes[part] for part in _parts(x)))
    results: list[Any] = [None, None, None]
    if edges[0] is not None:
        scale = rate if weight is None else rate * weight
        slopes = (_spread(each, x) for each in (projection * rate * rate / count, total / count, scale))
        result = _input_gradient(x, planes, middle, *slopes)
        results[0] = result.reshape(a.shape)
    if weight is not None and edges[1] is not None:
        results[1] = (projection * rate).astype(weight.dtype, copy=False)
    if edges[2] is not None:
        results[2] = total.astype(a.dtype, copy=False)
    return results


def _input_gradient(x: Array, grad: Array, mean: Array, projection: Array, total: Array, scale: Array) -> Array:
    result = np.empty_like(x)
    for part in _parts(x):
        values = mean - x[part]
        values *= projection
        values += grad[part]
        values -= total
        np.multiply(values, scale, out=result[part], casting="unsafe")
    return result


def _normal(xp: Any, a: Any, count: int, eps: float) -> tuple[Any, Any, tuple[int, ...]]:
    dims = (0, *range(2, a.ndim))
    centred = a - xp.sum_dims(a, dims, True) / count
    rate = (xp.sum_dims(centred * centred, dims, True) / count + eps) ** -0.5
    return centred * rate, rate, dims


def _input_rule(xp: Any, g: Any, a: Any, weight: Any, count: int, eps: float, *_: Any) -> Any:
    normal, rate, dims = _normal(xp, a, count, eps)
    if weight is not None:
        g = g * xp.reshape(weight, (-1, *(1,) * (a.ndim - 2)))
    projection = xp.sum_dims(g * normal, dims, True) / count
    return (g - xp.sum_dims(g, dims, True) / count - normal * projection) * rate


def _weight_rule(xp: Any, g: Any, a: Any, weight: Any, count: int, eps: float, *_: Any) -> Any:
    normal, _, dims = _normal(xp, a, count, eps)
    return xp.sum_dims(g * normal, dims, False)


def _bias_rule(xp: Any, g: Any, *_: Any) -> Any:
    return xp.sum_dims(g, (0, *range(2, g.ndim)), False)


_BATCH_NORM = Row("batch_norm", pull=shared_pull(_gradients, _input_rule, _weight_rule, _bias_rule))
