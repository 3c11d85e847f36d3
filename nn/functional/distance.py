"""Lengths, distances and angles of vectors."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math

import numpy as np

from ... import core
from ...core.extend import Tensor, operation

__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]


def norm(x: Tensor, p: float, dim: int, keepdim: bool = False) -> Tensor:
    """The norm of order ``p`` along ``dim``; its gradient at 0 is 0."""
    if p == math.inf:
        return core.amax(core.abs(x), dim, keepdim)
    powers = x * x if p == 2 else core.abs(x) if p == 1 else core.abs(x) ** p
    total = powers.sum(dim, keepdim)
    if p == 1:
        return total
    # A root has no finite slope at 0, which is replaced before and after it.
    zero = total == 0
    one, none = Tensor(np.ones((), x.dtype)), Tensor(np.zeros((), x.dtype))
    safe: Tensor = core.where(zero, one, total)
    return core.where(zero, none, safe.sqrt() if p == 2 else safe ** (1 / p))


@operation
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """``input`` divided by its norm of order ``p`` along ``dim``, or by ``eps`` if that is larger."""
    result = input / norm(input, p, dim, True).clamp(min=eps)
    return result if out is None else out.copy_(result)


@operation
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    """The norm of order ``p`` of ``x1 - x2 + eps`` along the last dimension: of (N, D) or (D,), broadcast."""
    return norm(x1 - x2 + eps, p, -1, keepdim)


@operation
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine of the angle between ``x1`` and ``x2`` along ``dim``; norms count as at least ``eps``."""
    x1, x2 = core.broadcast_tensors(x1, x2)
    first, second = norm(x1, 2, dim, True).clamp(min=eps), norm(x2, 2, dim, True).clamp(min=eps)
    return ((x1 / first) * (x2 / second)).sum(dim)
