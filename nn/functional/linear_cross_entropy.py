"""``linear_cross_entropy``: the cross entropy of a linear map, in chunks of samples if their logits should not fill memory."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...core import autograd
from ...core import cat as joined
from ...core.extend import Tensor, operation
from .class_loss import cross_entropy
from .linear import linear
from .reduction import chosen_reduction

__all__ = ["linear_cross_entropy"]


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """Options of ``linear_cross_entropy``, which let it compute a few samples at a time.

    The logits of a chunk of samples are computed again in the backward pass, so that those of all samples never exist at the
    same time. The passes may be repeated, and differentiated twice.

    Args:
        allow_retain_graph: has no effect: the backward pass may always be repeated.
        batch_chunk_size: number of samples of a chunk; by default as many as have no more logits than twice the elements of
            the input, and of a chunk at least one.
        chunking_method, acc_policy, acc_dtype: have no effect: sums are computed as those of ``cross_entropy``.

    Raises:
        ValueError: ``batch_chunk_size`` is not positive.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto"
    acc_dtype: npt.DTypeLike | None = None

    def __post_init__(self) -> None:
        if self.batch_chunk_size is not None and self.batch_chunk_size <= 0:
            raise ValueError(f"batch_chunk_size must be positive, and you gave {self.batch_chunk_size}")


@operation
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """Return ``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    Args:
        input: shape (F,) or (N, F).
        linear_weight: shape (C, F), or (C, d1, ..., F) for a loss at each of d1, ...; then the input has a batch.
        target: class indices () or (N,) or (N, d1, ...); or probabilities (C,) or (N, C, d1, ...).
        linear_bias: shape (C,) or (C, d1, ...).
        weight: weight of each class, shape (C,).
        reduction: "mean", "sum" or "none".
        ignore_index: class indices of this value count nothing; -100 if ``None``.
        label_smoothing: share of the target that is replaced by the uniform distribution, 0 to 1.
        options: for computing in chunks, which needs class indices, no ``d1`` and no smoothing; otherwise they are ignored,
            with a warning.

    Returns:
        A scalar, or for "none" a tensor of the shape of the class indices.

    Raises:
        ValueError: the shapes do not fit, ``ignore_index`` is given with probabilities, or an unknown reduction.
    """
    shape = _logits_shape(input, linear_weight, linear_bias)
    if target.shape == shape and ignore_index is not None:
        raise ValueError("targets that are probabilities take no ignore_index")
    ignored = -100 if ignore_index is None else ignore_index
    reduction = chosen_reduction(None, None, reduction)
    if options is not None and _in_chunks(linear_weight, target, label_smoothing):
        return _chunked(input, linear_weight, target, linear_bias, weight, reduction, ignored, options)
    features = input.shape[-1]
    rows = linear_weight.reshape(math.prod(linear_weight.shape[:-1]), features)
    logits = linear(input, rows, None if linear_bias is None else linear_bias.reshape(len(rows)))
    return cross_entropy(
        logits.reshape(shape),
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _logits_shape(input: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[int, ...]:
    if input.ndim not in (1, 2) or weight.ndim < 2 or input.shape[-1] != weight.shape[-1]:
        raise ValueError(
            f"the input must have shape (F,) or (N, F), and linear_weight (C, ..., F), not {input.shape} and {weight.shape}"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise ValueError(f"linear_bias must have shape {tuple(weight.shape[:-1])}, not {bias.shape}")
    if weight.ndim > 2 and input.ndim == 1:
        raise ValueError(f"a linear_weight of shape {weight.shape} takes an input (N, F), not {input.shape}")
    return (*input.shape[:-1], *weight.shape[:-1])


def _in_chunks(weight: Tensor, target: Tensor, smoothing: float) -> bool:
    possible = weight.ndim == 2 and target.dtype == np.int64 and not smoothing
    if not possible:
        warnings.warn(
            "linear_cross_entropy() ignores its options: they are for class indices (int64), a linear_weight of two "
            "dimensions and no label_smoothing",
            stacklevel=4,
        )
    return possible


def _chunked(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignored: int,
    options: LinearCrossEntropyOptions,
) -> Tensor:
    if input.ndim == 1:
        losses = _chunked(
            input.unsqueeze(0), linear_weight, target.unsqueeze(0), bias, weight, reduction, ignored, options
        )
        return losses.squeeze(0) if reduction == "none" else losses
    part = "none" if reduction == "none" else "sum"

    def loss(rows: Tensor, classes: Tensor) -> Tensor:
        return cross_entropy(linear(rows, linear_weight, bias), classes, weight, ignore_index=ignored, reduction=part)

    size = options.batch_chunk_size or max(1, 2 * input.numel() // max(1, len(linear_weight)))
    starts = range(0, max(1, len(input)), size)
    parts: list[Any] = [
        autograd.checkpoint(loss, input[start : start + size], target[start : start + size]) for start in starts
    ]
    if reduction == "none":
        return joined(parts)
    total = sum(parts[1:], parts[0])
    return total if reduction == "sum" else total / _counted(target, weight, ignored).to(total.dtype)


def _counted(target: Tensor, weight: Tensor | None, ignored: int) -> Tensor:
    """Return the sum of the weights of the targets that count."""
    classes = target.numpy()
    classes = classes[classes != ignored]
    return Tensor(np.asarray(float(len(classes)))) if weight is None else weight.detach()[Tensor(classes)].sum()
