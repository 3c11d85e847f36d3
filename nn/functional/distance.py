"""Norms, distances and angles of vectors."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from ...core import broadcast_tensors, pdist
from ...core.extend import Tensor, operation
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
    first, second = vector_norm(x1, 2, dim, True).clamp(min=eps), vector_norm(x2, 2, dim, True).clamp(min=eps)
    return ((x1 / first) * (x2 / second)).sum(dim)
