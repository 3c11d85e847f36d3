"""Losses of embeddings: similar samples are to be near each other, different ones far apart."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Callable

from ... import core
from ...core.extend import Tensor, operation, reduced
from .distance import pairwise_distance
from .reduction import chosen_reduction

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

Distance = Callable[[Tensor, Tensor], Tensor]


@operation
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    Args:
        input: distances, of any shape, floating-point.
        target: 1 or -1, broadcast with the input.
        margin: distance beyond which different samples cost nothing.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    similar, different = target != -1, target != 1
    return reduced(core.where(similar, input, 0) + core.where(different, (margin - input).clamp(min=0), 0), reduction)


@operation
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, -target * (input1 - input2) + margin)``.

    Args:
        input1, input2: scores, of one shape or broadcast, floating-point.
        target: 1 where ``input1`` is to be larger, -1 where ``input2`` is.
        margin: by how much.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: the numbers of dimensions differ, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise ValueError(
            f"inputs and target must have as many dimensions, not shapes {input1.shape}, {input2.shape}, {target.shape}"
        )
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


@operation
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``1 - cosine`` where the target is 1, ``max(0, cosine - margin)`` where it is -1.

    Args:
        input1, input2: vectors, shape (N, D) or (D,), floating-point.
        target: 1 or -1, shape (N,) or ().
        margin: cosine below which different vectors cost nothing, -1 to 1.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the target's shape.

    Raises:
        ValueError: the shapes do not fit, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise ValueError(
            f"inputs of shape (N, D) need a target of shape (N,), and you gave {input1.shape}, {input2.shape} and "
            f"{target.shape}"
        )
    lengths = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cosine = (input1 * input2).sum(-1) / lengths.sqrt()
    near, far = core.where(target == 1, 1 - cosine, 0), core.where(target == -1, (cosine - margin).clamp(min=0), 0)
    return reduced(near + far, reduction)


@operation
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, with ``d`` for ``pairwise_distance``.

    Args:
        anchor, positive, negative: vectors, shape (N, D) or (D,), floating-point.
        margin: by how much the negative is to be farther than the positive, above 0.
        p, eps: as for ``pairwise_distance``.
        swap: whether ``d(positive, negative)`` counts instead of ``d(anchor, negative)`` where it is smaller (Balntas
            et al. 2016).
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" shape (N,) or ().

    Raises:
        ValueError: the numbers of dimensions differ, ``margin`` is not positive, or an unknown reduction.
    """

    def distance(first: Tensor, second: Tensor) -> Tensor:
        return pairwise_distance(first, second, p, eps)

    reduction = chosen_reduction(size_average, reduce, reduction)
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


@operation
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Distance | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return ``triplet_margin_loss`` with another distance.

    Args:
        anchor, positive, negative: samples, as ``distance_function`` takes them.
        distance_function: returns the distances of two such tensors; ``pairwise_distance`` if ``None``.
        margin, swap, reduction: as for ``triplet_margin_loss``.

    Returns:
        A scalar, or for "none" the shape of the distances.

    Raises:
        ValueError: the numbers of dimensions differ, ``margin`` is not positive, or an unknown reduction.
    """
    distance: Distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(anchor, positive, negative, distance, margin, swap, chosen_reduction(None, None, reduction))


def _triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, distance: Distance, margin: float, swap: bool, reduction: str
) -> Tensor:
    if margin <= 0:
        raise ValueError(f"margin must be positive, and you gave {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ValueError(
            "anchor, positive and negative must have as many dimensions, and you gave shapes "
            f"{anchor.shape}, {positive.shape} and {negative.shape}"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = core.minimum(far, distance(positive, negative))
    return reduced((near - far + margin).clamp(min=0), reduction)
