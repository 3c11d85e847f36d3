"""Lengths, distances and angles of vectors."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import numpy as np

from ...core import linalg, pdist
from ...core.extend import Tensor, operation

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]


@operation
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """``input`` divided by its norm of order ``p`` along ``dim``, or by ``eps`` if that is larger."""
    result = input / linalg.vector_norm(input, p, dim, True).clamp(min=eps)
    return result if out is None else out.copy_(result)


@operation
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    """The norm of order ``p`` of ``x1 - x2 + eps`` along the last dimension: of (N, D) or (D,), broadcast."""
    return linalg.vector_norm(x1 - x2 + eps, p, -1, keepdim)


@operation
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine of the angle between ``x1`` and ``x2`` along ``dim``; norms count as at least ``eps``."""
    x1, x2 = (x1, x2) if x1.ndim == x2.ndim else _broadcast(x1, x2)
    first, second = (
        linalg.vector_norm(x1, 2, dim, True).clamp(min=eps),
        linalg.vector_norm(x2, 2, dim, True).clamp(min=eps),
    )
    return ((x1 / first) * (x2 / second)).sum(dim)


def _broadcast(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    shape = np.broadcast_shapes(x1.shape, x2.shape)
    return x1.expand(shape), x2.expand(shape)
