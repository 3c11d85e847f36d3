"""Losses. ``size_average`` and ``reduce`` are the deprecated form of ``reduction``; they keep their places."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import warnings

from ... import core
from ...core.extend import Tensor
from .activation import softplus

__all__ = ["binary_cross_entropy_with_logits", "cross_entropy", "l1_loss", "mse_loss", "nll_loss"]


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of ``softmax(input)`` and ``target``.

    Args:
        input: scores, shape (N, C), (C,) or (N, C, d1, ...).
        target: class indices, shape (N,), () or (N, d1, ...); or probabilities, of the input's shape.
        weight: of each class, shape (C,); the mean over class indices is a weighted one.
        ignore_index: targets of this value count nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: how much of the target is replaced by the uniform distribution, 0 to 1.

    Raises:
        IndexError: a class is out of range.
        ValueError: the shapes do not fit, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return core.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of class indices under log-probabilities; arguments as those of ``cross_entropy``."""
    return core.nll_loss(input, target, weight, ignore_index, chosen_reduction(size_average, reduce, reduction))


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared differences, reduced; the mean of weighted ones is divided by the weights' sum."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is None:
        return core.mse_loss(input, target, reduction)
    return _weighted(core.mse_loss(input, target, "none"), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute differences, reduced; the mean of weighted ones is divided by the weights' sum."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is None:
        return core.l1_loss(input, target, reduction)
    return _weighted(core.l1_loss(input, target, "none"), weight, reduction)


def _weighted(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return (losses * weight).sum() / weight.sum()
    return _reduced(losses * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of ``sigmoid(input)`` and ``target``, computed without overflow.

    Args:
        input: scores, of any shape.
        target: probabilities, of the same shape.
        weight: factors of the losses, broadcast to them.
        reduction: "mean", "sum" or "none".
        pos_weight: factors of the losses of positive targets, broadcast.

    Raises:
        ValueError: the shapes differ, or an unknown reduction.
    """
    if target.shape != input.shape:
        raise ValueError(f"the target must have the input's shape {input.shape}, not {target.shape}")
    # -log(sigmoid(x)) is softplus(-x), and -log(1 - sigmoid(x)) is softplus(-x) + x.
    positive = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    losses = (1 - target) * input + softplus(-input) * positive
    return _reduced(losses if weight is None else losses * weight, chosen_reduction(size_average, reduce, reduction))


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def chosen_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    if size_average is not None or reduce is not None:
        chosen = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f'size_average and reduce are deprecated; use reduction="{chosen}"', stacklevel=3)
        return chosen
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f'reduction must be "mean", "sum" or "none", and you gave {reduction!r}')
    return reduction
