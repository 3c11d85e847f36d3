"""Lengths, distances and angles of vectors."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from ...core import broadcast_tensors, pdist
from ...core.extend import Tensor, operation
from ...core.linalg import vector_norm

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]


@operation
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """``input`` divided by its norm of order ``p`` along ``dim``, or by ``eps`` if that is larger."""
    result = input / vector_norm(input, p, dim, True).clamp(min=eps)
    return result if out is None else out.copy_(result)


@operation
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    """The norm of order ``p`` of ``x1 - x2 + eps`` along the last dimension: of (N, D) or (D,), broadcast."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@operation
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine of the angle between ``x1`` and ``x2`` along ``dim``; norms count as at least ``eps``."""
    x1, x2 = broadcast_tensors(x1, x2)
    first, second = vector_norm(x1, 2, dim, True).clamp(min=eps), vector_norm(x2, 2, dim, True).clamp(min=eps)
    return ((x1 / first) * (x2 / second)).sum(dim)
