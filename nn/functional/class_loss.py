"""Losses of classification: of one class among several, of several independent classes, and of margins between scores."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import Any

import numpy as np

from ... import core
from ...core.extend import Row, Tensor, as_array, keep, log1p_exp, operation, record, records, reduced
from .activation import logsigmoid, softplus
from .reduction import check_same_shape, chosen_reduction

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "soft_margin_loss",
]

# As in PyTorch: a mistake made with certainty costs much, but not infinitely much.
LOWEST_LOG, SMALLEST = -100.0, 1e-12


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
    """Return the cross entropy of ``softmax(input)`` and ``target``.

    For class indices: ``-weight[target] * log_softmax(input)[target]``, averaged with these weights for "mean".

    Args:
        input: scores, shape (N, C), (C,) or (N, C, d1, ...), floating-point.
        target: class indices, shape (N,), () or (N, d1, ...); or probabilities, of the input's shape.
        weight: weight of each class, shape (C,).
        size_average, reduce: deprecated; use ``reduction``.
        ignore_index: targets of this value count nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: share of the target that is replaced by the uniform distribution, 0 to 1 (Szegedy et al. 2016).

    Returns:
        A scalar, or for "none" the shape of the class indices.

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
    """Return the negative log-likelihood of class indices: ``-weight[target] * input[target]``.

    Args:
        input: log-probabilities, shape (N, C), (C,) or (N, C, d1, ...), floating-point.
        target: class indices, shape (N,), () or (N, d1, ...).
        weight: weight of each class, shape (C,); the mean is divided by the sum of the targets' weights.
        size_average, reduce: deprecated; use ``reduction``.
        ignore_index: targets of this value count nothing.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the shape of the target.

    Raises:
        IndexError: a class is out of range.
        ValueError: the shapes do not fit, or an unknown reduction.
    """
    return core.nll_loss(input, target, weight, ignore_index, chosen_reduction(size_average, reduce, reduction))


def _log(x: Any) -> Any:
    return np.maximum(np.log(x), LOWEST_LOG)


def _bce_input(xp: Any, g: Any, a: Any, target: Any) -> Any:
    variance = a * (1 - a)
    return g * (a - target) / xp.where(variance < SMALLEST, variance * 0 + SMALLEST, variance)


def _bce_target(xp: Any, g: Any, a: Any, target: Any) -> Any:
    inside = (a > 0) & (a < 1)
    safe = xp.where(inside, a, a * 0 + 0.5)
    odds = xp.log(1 - safe) - xp.log(safe)
    return g * xp.where(inside, odds, xp.where(a > 0, a * 0 + LOWEST_LOG, a * 0 - LOWEST_LOG))


_BCE = Row("binary_cross_entropy", _bce_input, _bce_target)
_BCE_WITH_LOGITS = Row(
    "binary_cross_entropy_with_logits",
    lambda xp, g, a, target: g * (xp.sigmoid(a) - target),
    lambda xp, g, a, target: -g * a,
)


@operation
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the binary cross entropy ``-target * log(input) - (1 - target) * log(1 - input)``.

    As in PyTorch, logarithms below -100 count as -100.

    Args:
        input: probabilities, of any shape, floating-point.
        target: probabilities, of the same shape.
        weight: factors of the losses, broadcast to them.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the input's shape.

    Raises:
        ValueError: the shapes differ, a probability is not within 0 and 1, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_same_shape(input, target)
    x, y = input.numpy(force=True), target.numpy(force=True)
    if ((x < 0) | (x > 1)).any():
        raise ValueError("the input must be probabilities between 0 and 1; of scores, use the loss with_logits")
    with np.errstate(divide="ignore"):
        losses = Tensor(as_array((y - 1) * _log(1 - x) - y * _log(x)).astype(np.result_type(x, y), copy=False))
    if records(input, target):
        record(_BCE, losses, (input, target), (keep(input), keep(target)))
    return reduced(losses if weight is None else losses * weight, reduction)


@operation
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross entropy of ``sigmoid(input)`` and ``target``, computed without overflow.

    Args:
        input: scores, of any shape, floating-point.
        target: probabilities, of the same shape.
        weight: factors of the losses, broadcast to them.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".
        pos_weight: factors of the term ``-target * log(sigmoid(input))``, broadcast.

    Returns:
        A scalar, or for "none" the input's shape.

    Raises:
        ValueError: the shapes differ, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_same_shape(input, target)
    # -log(sigmoid(x)) is softplus(-x), and -log(1 - sigmoid(x)) is softplus(-x) + x.
    if pos_weight is None and input.dtype == target.dtype and input.dtype in (core.float32, core.float64):
        losses = _of_logits(input, target)
    else:
        positive = 1 if pos_weight is None else (pos_weight - 1) * target + 1
        losses = (1 - target) * input + softplus(-input, threshold=float("inf")) * positive
    return reduced(losses if weight is None else losses * weight, reduction)


def _of_logits(input: Tensor, target: Tensor) -> Tensor:
    """Return the losses without weights, as one operation."""
    x, y = input.numpy(force=True), target.numpy(force=True)
    losses = 1 - y
    losses *= x
    losses += log1p_exp(-np.abs(x))
    losses += np.clip(-x, 0, np.inf)
    result = Tensor(as_array(losses))
    if records(input, target):
        record(_BCE_WITH_LOGITS, result, (input, target), (keep(input), keep(target)))
    return result


@operation
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``log(1 + exp(-target * input))``.

    Args:
        input: scores, of any shape, floating-point.
        target: 1 or -1, of the same shape.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the input's shape.

    Raises:
        ValueError: the shapes differ, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_same_shape(input, target)
    return reduced(softplus(-target * input, threshold=float("inf")), reduction)


@operation
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``binary_cross_entropy_with_logits``, averaged over the classes and then reduced.

    Args:
        input: scores, shape (..., C), floating-point.
        target: 0 or 1 for each class, of the same shape.
        weight: factors of the losses, broadcast to them.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" shape (...).

    Raises:
        ValueError: the shapes differ, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_same_shape(input, target)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    return reduced((losses if weight is None else losses * weight).mean(-1), reduction)


@operation
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``sum over c != target of max(0, margin - input[target] + input[c]) ** p / C``.

    Args:
        input: scores, shape (N, C) or (C,), floating-point.
        target: class indices, shape (N,) or ().
        p: 1 or 2.
        margin: by how much the target's score is to exceed the others.
        weight: weight of each target class, shape (C,).
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the target's shape.

    Raises:
        ValueError: the shapes do not fit, a class is out of range, ``p`` is not 1 or 2, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError(f"p must be 1 or 2, and you gave {p}")
    scores, classes = _scores_and_classes(input, target)
    rows = np.arange(len(scores))
    shortfall = core.relu(scores - scores[rows, classes].unsqueeze(1) + margin)
    shortfall = shortfall * shortfall if p == 2 else shortfall
    others = np.ones(scores.shape, scores.dtype) / max(scores.shape[1], 1)
    others[rows, classes] = 0
    if weight is not None:
        others *= weight.numpy(force=True)[classes][:, None]
    losses = core.where(Tensor(others != 0), shortfall * Tensor(others), 0).sum(1)
    return reduced(losses if input.ndim > 1 else losses.reshape(()), reduction)


@operation
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``sum over targets t and other classes c of max(0, 1 - input[t] + input[c]) / C``.

    Args:
        input: scores, shape (N, C) or (C,), floating-point.
        target: class indices, of the same shape; those from the first -1 on do not count.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" shape (N,).

    Raises:
        ValueError: the shapes differ, a class is out of range, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_same_shape(input, target)
    scores = input if input.ndim > 1 else input.reshape(1, -1)
    classes = target.numpy().reshape(scores.shape)
    counted = np.logical_and.accumulate(classes >= 0, axis=1) if classes.size else classes >= 0
    chosen = np.where(counted, classes, 0)
    if (chosen >= scores.shape[1]).any():
        raise ValueError(f"the target must hold classes below {scores.shape[1]}")
    rows = np.arange(len(scores))[:, None]
    is_target = np.zeros(scores.shape, bool)
    np.logical_or.at(is_target, (rows, chosen), counted)
    pairs = counted[:, :, None] & ~is_target[:, None, :]
    shortfall = core.relu(scores.unsqueeze(1) - scores[rows, chosen].unsqueeze(2) + 1)
    losses = core.where(Tensor(pairs), shortfall, 0).sum((1, 2)) / scores.shape[1]
    return reduced(losses if input.ndim > 1 else losses.reshape(()), reduction)


def _scores_and_classes(input: Tensor, target: Tensor) -> tuple[Tensor, Any]:
    scores = input if input.ndim > 1 else input.reshape(1, -1)
    if scores.ndim != 2 or target.ndim > 1 or target.numel() != len(scores):
        raise ValueError(f"an input of shape {input.shape} (N, C) does not fit targets of shape {target.shape} (N,)")
    classes = target.numpy().reshape(-1).copy()  # the gradient needs it: the caller may change the target in place
    if ((classes < 0) | (classes >= scores.shape[1])).any():
        raise ValueError(f"the target must hold classes from 0 to {scores.shape[1] - 1}")
    return scores, classes
