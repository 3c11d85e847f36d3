"""The losses of classes in ``functional`` as modules, which keep their weights, reduction and other settings."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from ..core.extend import Tensor
from . import functional as F
from .loss import _Loss


class _WeightedLoss(_Loss):
    """A loss with a buffer ``weight``."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class NLLLoss(_WeightedLoss):
    """The negative log-likelihood of class indices under log-probabilities; see ``functional.nll_loss``."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or of the target's shape."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of ``softmax(input)`` and classes or probabilities; see ``functional.cross_entropy``."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or of the shape of class indices."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """The binary cross entropy of probabilities; see ``functional.binary_cross_entropy``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or of the input's shape."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """The binary cross entropy of ``sigmoid(input)``; see ``functional.binary_cross_entropy_with_logits``."""

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or of the input's shape."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """``BCEWithLogitsLoss``, averaged over the classes (the last dimension) and then reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or one for each sample."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """How far other classes' scores come within ``margin`` of the target's; see ``functional.multi_margin_loss``."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or one for each sample."""
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """How far other classes' scores come within 1 of the targets'; see ``functional.multilabel_margin_loss``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or one for each sample."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``, for targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or of the input's shape."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CTCLoss(_Loss):
    """The negative log-likelihood of label sequences that are not aligned with the input; see ``functional.ctc_loss``."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        """A number, or one for each sequence."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
