"""``LinearCrossEntropyLoss``: a linear layer and the cross entropy of its outputs."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math

import numpy.typing as npt

from ..core.extend import Tensor
from . import functional as F
from .class_loss import _WeightedLoss
from .functional.linear_cross_entropy import LinearCrossEntropyOptions
from .linear import Linear

__all__ = ["LinearCrossEntropyLoss"]


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of the outputs of ``linear``, a ``Linear`` layer, and class indices or probabilities.

    Args:
        in_features: number of features F of the input.
        num_classes: number of classes C.
        out_features: shape d1, ... of the losses of one sample; ``()`` for one loss.
        bias: whether the layer has a bias.
        device: ``None`` or "cpu".
        dtype: of the layer; the default dtype if ``None``.
        reduction: "mean", "sum" or "none".
        weight: weight of each class, shape (C,).
        ignore_index: class indices of this value count nothing; -100 if ``None``.
        label_smoothing: share of the target that is replaced by the uniform distribution, 0 to 1.
        options: see ``LinearCrossEntropyOptions``.

    Raises:
        ValueError: the weight has another shape, ``label_smoothing`` is not from 0 to 1, or an unknown reduction; (of a
            call) as ``functional.linear_cross_entropy``.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise ValueError(f"the weight must have shape ({num_classes},), one for each class, not {weight.shape}")
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"label_smoothing must be between 0 and 1, and you gave {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = Linear(in_features, math.prod(self.out_features, start=num_classes), bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the shape of the class indices.

        Args:
            input: shape (F,) or (N, F).
            target: class indices () or (N, *out_features), or probabilities (C,) or (N, C, *out_features).
        """
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """Return the settings as text."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
