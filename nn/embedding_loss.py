"""The losses of similarity in ``functional`` as modules; and distances as layers."""

from __future__ import annotations

from ..core.extend import Tensor
from . import functional as F
from .functional.embedding_loss import Distance
from .loss import _Loss
from .module import Module


class HingeEmbeddingLoss(_Loss):
    """Of distances: themselves where the target is 1, what they lack of ``margin`` where it is -1."""

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
        """A number, or of the input's shape."""
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
    """What ``input1`` lacks of being ``margin`` above ``input2`` where the target is 1, and below it where it is -1."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """A number, or of the inputs' shape."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_TwoInputsLoss):
    """Of the cosine: ``1 - cosine`` where the target is 1, what it exceeds ``margin`` by where it is -1."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """A number, or one for each pair."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """What the negative lacks of being ``margin`` farther from the anchor than the positive is."""

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
        """A number, or one for each triple."""
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """``TripletMarginLoss`` with a distance of your own; it is ``PairwiseDistance`` if ``None``."""

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
        """A number, or one for each triple."""
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
    """The cosine of the angle between two tensors along ``dim``; norms count as at least ``eps``."""

    def __init__(self, dim: int = 1, eps: float = 1e-08) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Of the inputs' shape without ``dim``."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of order ``p`` of ``x1 - x2 + eps`` along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Shape (N,), or (N, 1) with ``keepdim``."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
