"""Layers of classification losses, which keep their weights, reduction and other settings."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from ..core.extend import Tensor
from . import functional as F
from .loss import _Loss


class _WeightedLoss(_Loss):
    """Loss with a buffer ``weight``."""

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
    """Negative log-likelihood of class indices: ``-weight[target] * input[target]``.

    Args:
        weight: weight of each class, shape (C,).
        size_average, reduce: deprecated; use ``reduction``.
        ignore_index: targets of this value count nothing.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.nll_loss``.
    """

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
        """Return a scalar, or for "none" a tensor of the target's shape."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of ``softmax(input)`` and class indices or probabilities.

    Args:
        weight: weight of each class, shape (C,).
        size_average, reduce: deprecated; use ``reduction``.
        ignore_index: targets of this value count nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: share of the target that is replaced by the uniform distribution, 0 to 1.

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.cross_entropy``.
    """

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
        """Return a scalar, or for "none" a tensor of the shape of the class indices."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities: ``-target * log(input) - (1 - target) * log(1 - input)``.

    Args:
        weight: factors of the losses, broadcast to them.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.binary_cross_entropy``.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of ``sigmoid(input)`` and the target, computed without overflow.

    Args:
        weight: factors of the losses, broadcast to them.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".
        pos_weight: factors of the losses of positive targets, broadcast.

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.binary_cross_entropy_with_logits``.
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """``BCEWithLogitsLoss``, averaged over the classes (the last dimension) and then reduced.

    Args:
        weight: factors of the losses, broadcast to them.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.multilabel_soft_margin_loss``.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" one loss for each sample."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """``sum over c != target of max(0, margin - input[target] + input[c]) ** p / C``.

    Args:
        p: 1 or 2.
        margin: by how much the target's score is to exceed the others.
        weight: weight of each target class, shape (C,).
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.multi_margin_loss``.
    """

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
        """Return a scalar, or for "none" one loss for each sample."""
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """``sum over targets t and other classes c of max(0, 1 - input[t] + input[c]) / C``.

    Args:
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.multilabel_margin_loss``.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" one loss for each sample."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``, for targets 1 and -1.

    Args:
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.soft_margin_loss``.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CTCLoss(_Loss):
    """Negative log-likelihood of label sequences whose alignment with the input is unknown.

    Args:
        blank: the class that means no label.
        reduction: "mean" (each loss is divided by its number of labels first), "sum" or "none".
        zero_infinity: whether the loss of more labels than fit, and its gradient, are 0 instead of infinite.

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.ctc_loss``.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        """Return a scalar, or for "none" one loss for each sequence.

        Args:
            log_probs, targets, input_lengths, target_lengths: as for ``functional.ctc_loss``.
        """
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
