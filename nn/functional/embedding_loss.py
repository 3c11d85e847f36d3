"""Losses of similarity: which pairs or triples of samples are to be near each other, and which apart."""
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
    """Of distances ``input``: themselves where the target is 1, what they lack of ``margin`` where it is -1."""
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
    """What ``input1`` lacks of being ``margin`` above ``input2`` where the target is 1, and below it where it is -1.

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
    """Of the cosine: ``1 - cosine`` where the target is 1, what it exceeds ``margin`` by where it is -1.

    Args:
        input1, input2: shape (N, D) or (D,).
        target: shape (N,) or ().
        margin: see above.
        reduction: "mean", "sum" or "none".

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
    """What the negative lacks of being ``margin`` farther from the anchor than the positive is.

    Args:
        anchor, positive, negative: shape (N, D) or (D,).
        margin: see above.
        p, eps: of ``pairwise_distance``.
        swap: whether the distance of positive and negative counts instead, where it is smaller (Balntas et al. 2016).
        reduction: "mean", "sum" or "none".

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
    """``triplet_margin_loss`` with a distance of your own; it is ``pairwise_distance`` if ``None``."""
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
