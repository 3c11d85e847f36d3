"""``layer_norm``, as one operation with gradient rules of its own.

Every transformer block has two of them, and with small inputs each pass over memory counts.
"""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.extend import (
    Array,
    Row,
    RowBuffers,
    Tensor,
    column_sums,
    keep,
    operation,
    record,
    records,
    row_dots,
    row_sums,
)
from .normalization import affine, last_dims, shared_pull, standardized

__all__ = ["layer_norm"]


@operation
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Return ``(input - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba et al. 2016).

    Args:
        input: shape (..., *normalized_shape), floating-point.
        normalized_shape: lengths of the last dimensions, over which the mean and the biased variance are taken.
        weight, bias: shape ``normalized_shape``.
        eps: added to the variance.

    Returns:
        The input's shape.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: the input's last dimensions are others, or a parameter has another shape.
    """
    shape, dims, by_row = last_dims(input, normalized_shape, weight, bias)
    given = [tensor for tensor in (input, weight, bias) if tensor is not None]
    dtypes = {tensor.dtype for tensor in given}
    if len(dtypes) > 1 or input.dtype.char not in "fd" or not input.numel():
        return affine(standardized(input, by_row, eps)[0], weight, bias, shape)
    size = by_row[1]
    rows = input.numpy(force=True).reshape(by_row)
    with RowBuffers(rows):
        normal = rows - row_sums(rows, 1 / size)
        squares = row_dots(normal, normal)
        rate = math.sqrt(size) / np.sqrt(squares + size * eps)
        normal *= rate
    out = normal.copy() if weight is None else normal * weight.numpy(force=True).reshape(-1)
    if bias is not None:
        out += bias.numpy(force=True).reshape(-1)
    result = Tensor(out.reshape(input.shape))
    if records(*given):
        saved = (keep(input), None if weight is None else keep(weight))
        record(_LAYER_NORM, result, (input, weight, bias), saved, shape, dims, eps, normal, rate)
    return result


def _gradients(
    grad: Array,
    edges: Sequence[Any],
    a: Array,
    weight: Array | None,
    shape: Any,
    dims: Any,
    eps: float,
    normal: Array,
    rate: Array,
) -> list[Any]:
    size = normal.shape[1]
    rows = grad.reshape(normal.shape)
    results: list[Any] = [None, None, None]
    if edges[0] is not None:
        inner = rows if weight is None else rows * weight.reshape(-1)
        with RowBuffers(rows):
            projection = row_dots(inner, normal)
            result = normal * (projection / -size)
            result += inner
            result -= row_sums(inner, 1 / size)
            result *= rate
        results[0] = result.reshape(grad.shape)
    if edges[1] is not None:
        results[1] = column_sums(rows * normal).reshape(shape)
    if edges[2] is not None:
        results[2] = column_sums(rows).reshape(shape)
    return results


def _normal(xp: Any, a: Any, dims: tuple[int, ...], size: int, eps: float) -> tuple[Any, Any]:
    centred = a - xp.sum_dims(a, dims, True) / size
    rate = (xp.sum_dims(centred * centred, dims, True) / size + eps) ** -0.5
    return centred * rate, rate


def _input_rule(xp: Any, g: Any, a: Any, weight: Any, shape: Any, dims: Any, eps: float, *_: Any) -> Any:
    size = math.prod(shape)
    normal, rate = _normal(xp, a, dims, size, eps)
    g = g if weight is None else g * weight
    projection = xp.sum_dims(g * normal, dims, True) / size
    return (g - xp.sum_dims(g, dims, True) / size - normal * projection) * rate


def _weight_rule(xp: Any, g: Any, a: Any, weight: Any, shape: Any, dims: Any, eps: float, *_: Any) -> Any:
    return xp.fit(g * _normal(xp, a, dims, math.prod(shape), eps)[0], shape, g.dtype)


def _bias_rule(xp: Any, g: Any, a: Any, weight: Any, shape: Any, *_: Any) -> Any:
    return xp.fit(g, shape, g.dtype)


_LAYER_NORM = Row("layer_norm", pull=shared_pull(_gradients, _input_rule, _weight_rule, _bias_rule))
