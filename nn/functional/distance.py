"""Norms, distances and angles of vectors."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core import broadcast_tensors, float32, float64, pdist
from ...core.extend import Array, Tensor, as_array, fused, one_dim, operation, records, row_dots
from ...core.linalg import vector_norm

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]


@operation
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Return ``input / max(norm(input), eps)``, with the norm along one dimension.

    Args:
        input: any shape, floating-point or complex.
        p: order of the norm.
        dim: dimension of the vectors.
        eps: smallest divisor.
        out: tensor that receives the result.

    Returns:
        The input's shape.
    """
    result = input / vector_norm(input, p, dim, True).clamp(min=eps)
    return result if out is None else out.copy_(result)


@operation
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    """Return the norm of ``x1 - x2 + eps`` along the last dimension.

    Args:
        x1, x2: shape (N, D) or (D,), broadcast together.
        p: order of the norm.
        eps: added to each difference, so that the gradient at 0 is finite.
        keepdim: whether the last dimension stays, with length 1.

    Returns:
        Shape (N,) or (); with ``keepdim`` (N, 1) or (1,).

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@operation
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Return ``sum(x1 * x2) / (max(norm(x1), eps) * max(norm(x2), eps))``, the cosine of the angle between vectors.

    Args:
        x1, x2: floating-point, broadcast together.
        dim: dimension of the vectors.
        eps: smallest norm in the divisor.

    Returns:
        The broadcast shape without ``dim``.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    x1, x2 = broadcast_tensors(x1, x2)
    composed = partial(_cosine, dim=dim, eps=eps)
    if x1.dtype != x2.dtype or x1.dtype not in (float32, float64) or not x1.ndim or not x1.numel():
        return composed(x1, x2)
    return _cosine_of_arrays(x1, x2, one_dim(dim, x1.ndim), eps, composed)


def _cosine(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    first, second = vector_norm(x1, 2, dim, True).clamp(min=eps), vector_norm(x2, 2, dim, True).clamp(min=eps)
    return ((x1 / first) * (x2 / second)).sum(dim)


def _cosine_of_arrays(x1: Tensor, x2: Tensor, axis: int, eps: float, composed: Callable[..., Tensor]) -> Tensor:
    """Return the cosines as one operation: as several, each would store arrays of the inputs' shape."""
    x, y = x1.numpy(force=True), x2.numpy(force=True)
    lengths = [np.sqrt(_dots(each, each, axis)) for each in (x, y)]
    first, second = [np.maximum(length, eps) for length in lengths]
    cosines = _dots(x / first, y / second, axis)
    result = cosines.squeeze(axis)
    if not records(x1, x2):
        return Tensor(result)

    def backward(grads: Sequence[Any], needs: Sequence[bool]) -> list[Any]:
        g = np.expand_dims(grads[0], axis)
        across, along = g / (first * second), g * cosines
        parts = ((x, y, first, lengths[0]), (y, x, second, lengths[1]))
        return [
            other * across - own * (along * (length >= eps) / (bound * bound)) if need else None
            for need, (own, other, bound, length) in zip(needs, parts)
        ]

    return fused("cosine_similarity", (x1, x2), (result,), backward, lambda *inputs: (composed(*inputs),))[0]


def _dots(x: Array, y: Array, axis: int) -> Array:
    if axis == x.ndim - 1:
        return row_dots(x, y)
    return as_array((x * y).sum(axis=axis, keepdims=True))
