"""Layers of losses of embeddings, and of distances."""

from __future__ import annotations

from ..core.extend import Tensor
from . import functional as F
from .functional.embedding_loss import Distance
from .loss import _Loss
from .module import Module


class HingeEmbeddingLoss(_Loss):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1, for distances ``input``.

    Args:
        margin: distance beyond which different samples cost nothing.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.hinge_embedding_loss``.
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class _TwoInputsLoss(_Loss):
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(_TwoInputsLoss):
    """``max(0, -target * (input1 - input2) + margin)``.

    Args:
        margin: by how much the right score is to be larger.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.margin_ranking_loss``.
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the inputs' shape.

        Args:
            input1, input2, target: as for ``functional.margin_ranking_loss``.
        """
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_TwoInputsLoss):
    """``1 - cosine`` where the target is 1, ``max(0, cosine - margin)`` where it is -1.

    Args:
        margin: cosine below which different vectors cost nothing, -1 to 1.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.cosine_embedding_loss``.
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" one loss for each pair.

        Args:
            input1, input2, target: as for ``functional.cosine_embedding_loss``.
        """
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, with d for ``functional.pairwise_distance``.

    Args:
        margin: by how much the negative is to be farther than the positive, above 0.
        p, eps: as for ``functional.pairwise_distance``.
        swap: whether ``d(positive, negative)`` counts instead of ``d(anchor, negative)`` where it is smaller.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: ``margin`` is not positive, or an unknown reduction; (of a call) as
            ``functional.triplet_margin_loss``.
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-06,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: margin must be positive, and you gave {margin}")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return a scalar, or for "none" one loss for each triple.

        Args:
            anchor, positive, negative: as for ``functional.triplet_margin_loss``.
        """
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """``TripletMarginLoss`` with another distance.

    Args:
        distance_function: returns the distances of two tensors of samples; ``PairwiseDistance`` if ``None``.
        margin, swap, reduction: as for ``TripletMarginLoss``.

    Raises:
        ValueError: ``margin`` is not positive, or an unknown reduction; (of a call) as
            ``functional.triplet_margin_with_distance_loss``.
    """

    def __init__(
        self,
        *,
        distance_function: Distance | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: margin must be positive, and you gave {margin}")
        self.distance_function: Distance = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return a scalar, or for "none" one loss for each triple.

        Args:
            anchor, positive, negative: as for ``functional.triplet_margin_with_distance_loss``.
        """
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CosineSimilarity(Module):
    """Cosine of the angle between vectors; see ``functional.cosine_similarity``.

    Args:
        dim: dimension of the vectors.
        eps: smallest norm in the divisor.
    """

    def __init__(self, dim: int = 1, eps: float = 1e-08) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return a tensor of the inputs' shape without ``dim``."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Norm of ``x1 - x2 + eps`` along the last dimension; see ``functional.pairwise_distance``.

    Args:
        p: order of the norm.
        eps: added to each difference, so that the gradient at 0 is finite.
        keepdim: whether the last dimension stays, with length 1.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return a tensor of shape (N,), or (N, 1) with ``keepdim``."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
