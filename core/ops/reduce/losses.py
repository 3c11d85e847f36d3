"""Losses with PyTorch's reductions ``"mean"``, ``"sum"`` and ``"none"``."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from ...array_like import ArrayLike, holds, within
from ...dtypes import is_floating, wide_type
from ...tensors import Tensor
from ...types import Array
from ..elementwise.conversion import to
from ..elementwise.exponential import square
from ..elementwise.operators import abs as absolute
from ..index.masking import where
from ..table.nodes import keep, record, records
from ..table.operation import operation
from ..table.rows import ARRAYS, Row
from ..table.watched import watched
from .reductions import mean
from .reductions import sum as total
from .softmax import along, log_softmax, peak


def _nll_rule(xp: Any, g: Any, shape: Any, index: Any, weights: Any, complete: bool) -> Any:
    g = -_weighted(xp, g, weights, complete)
    if xp is not ARRAYS or any(isinstance(each, ArrayLike) for each in (g, *index)):
        return xp.scatter(shape, index, g)
    result = np.zeros(shape, g.dtype)
    result[index] = g  # no element is named twice
    return result


def _weighted(xp: Any, g: Any, weights: Any, complete: bool) -> Any:
    # Where a target is ignored, the gradient is 0, also of infinity.
    return g * weights if complete else xp.chosen(weights != 0, g * weights)


def _cross_entropy_rule(
    xp: Any, g: Any, a: Any, axis: int, index: Any, weights: Any, complete: bool, forward: Any
) -> Any:
    g = _weighted(xp, g, weights, complete)
    share = xp.reshape(g, (*weights.shape[:axis], 1, *weights.shape[axis:]))
    if xp is ARRAYS:
        exponentials, sums = forward
        result = exponentials * (share / sums)
        result[index] -= g
        return result
    exponentials = xp.exp(a - Tensor(peak(a._array, axis)))
    softmax = exponentials / xp.sum_dims(exponentials, axis, True)
    return softmax * share - xp.scatter(a.shape, index, g)


_NLL = Row("nll_loss", _nll_rule)
_CROSS_ENTROPY = Row("cross_entropy_loss", _cross_entropy_rule)


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """Return the mean or the sum of ``losses``, or ``losses`` itself, as ``reduction`` says.

    Raises:
        ValueError: ``reduction`` is not "mean", "sum" or "none".
    """
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return total(losses)
    check_reduction(reduction)
    return losses


def check_reduction(reduction: str) -> None:
    """Check that ``reduction`` is a known one.

    Raises:
        ValueError: ``reduction`` is not "mean", "sum" or "none".
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'reduction must be "mean", "sum" or "none", and you gave {reduction!r}')


@operation(function=True)
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the squared error ``(input - target)**2``, reduced.

    Args:
        input: predictions, of any shape.
        target: of the same shape; another shape is broadcast, with a warning.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: the shapes cannot be broadcast, or ``reduction`` is none of the three.
    """
    check_broadcast("mse_loss", input, target)
    return reduced(square(input - target), reduction)


@operation(function=True)
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the absolute error ``abs(input - target)``, reduced.

    Args:
        input: predictions, of any shape.
        target: of the same shape; another shape is broadcast, with a warning.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: the shapes cannot be broadcast, or ``reduction`` is none of the three.
    """
    check_broadcast("l1_loss", input, target)
    return reduced(absolute(input - target), reduction)


@operation(function=True)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of the classes ``target`` under the log-probabilities ``input``.

    Args:
        input: shape ``(N, C)``, ``(C,)`` or ``(N, C, d1, ...)``.
        target: class indices, shape ``(N,)``, ``()`` or ``(N, d1, ...)``.
        weight: weights of the classes ``(C,)``; "mean" divides by the sum of the targets' weights.
        ignore_index: targets of this value are ignored.
        reduction: "mean", "sum" or "none".

    Raises:
        TypeError: the targets are not integers.
        IndexError: a class is out of range.
        ValueError: the shapes do not fit.
    """
    if wide_type(input.dtype) != input.dtype:
        precise = to(input, wide_type(input.dtype))
        return to(nll_loss(precise, target, weight, ignore_index, reduction), input.dtype)
    x = input._array
    axis = 0 if x.ndim == 1 else 1
    index, weights, complete = _index_and_weights(x, target._array, axis, weight, ignore_index, reduction)
    # Elements of weight 0 are replaced, because 0 times -inf would be nan.
    chosen = x[index] if complete else np.where(weights == 0, 0, x[index]).astype(x.dtype)
    losses = -chosen * weights
    result = _summed(losses, weights, reduction, complete)
    if records(input):
        record(_NLL, result, (input,), (), x.shape, index, weights, complete)
    return watched(result, target)


@operation(function=True)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of ``softmax(input)`` and ``target``: class indices, or probabilities of the input's shape.

    ``label_smoothing`` mixes the target with the uniform distribution over the classes.

    Args:
        input: scores ``(C,)``, ``(N, C)`` or ``(N, C, ...)``, floating-point.
        target: class indices ``()``, ``(N,)`` or ``(N, ...)``, or probabilities of the shape of ``input``.
        weight: weights of the classes ``(C,)``; "mean" divides by the sum of the targets' weights.
        ignore_index: targets of this value are ignored.
        reduction: "mean", "sum" or "none".
        label_smoothing: weight of the uniform distribution in the target, 0 to 1.

    Raises:
        IndexError: a class is out of range.
        TypeError: the targets are neither integers nor floating-point.
        ValueError: the shapes do not fit, or ``reduction`` or ``label_smoothing`` is invalid.
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be between 0 and 1, and you gave {label_smoothing}")
    if wide_type(input.dtype) != input.dtype:
        precise = to(input, wide_type(input.dtype))
        losses = cross_entropy(precise, target, weight, ignore_index, reduction, label_smoothing)
        return to(losses, input.dtype)
    axis = 0 if input.ndim == 1 else 1
    soft = is_floating(target.dtype)
    if not soft and not label_smoothing and input.dtype.kind == "f":
        return _hard_cross_entropy(input, target, weight, ignore_index, reduction, axis)
    scores = log_softmax(input, axis)
    if soft:
        return _soft_cross_entropy(scores, target, weight, reduction, label_smoothing, axis)
    hard = nll_loss(scores, target, weight, ignore_index, reduction)
    uniform = _uniform_cross_entropy(scores, target, weight, ignore_index, reduction, axis)
    return hard * (1 - label_smoothing) + uniform * label_smoothing


def _hard_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, axis: int
) -> Tensor:
    # The usual case, as one operation: neither the log-probabilities nor their gradients are stored.
    x = input._array
    index, weights, complete = _index_and_weights(x, target._array, axis, weight, ignore_index, reduction)
    shifted = x - peak(x, axis)
    exponentials = np.exp(shifted)
    sums = along(exponentials, axis)
    with np.errstate(divide="ignore"):
        losses = np.log(sums).reshape(weights.shape) - shifted[index]
    if not complete:
        losses = np.where(weights == 0, 0, losses).astype(x.dtype, copy=False)
    losses = losses * weights
    result = _summed(losses, weights, reduction, complete)
    if records(input):
        given = axis, index, weights, complete, (exponentials, sums)
        record(_CROSS_ENTROPY, result, (input,), (keep(input),), *given)
    return watched(result, target)


def _summed(losses: Array, weights: Array, reduction: str, complete: bool) -> Tensor:
    if reduction == "none":
        return Tensor(losses)
    counted = complete and losses.size
    if reduction == "mean" and losses.dtype.kind == "f" and not counted and not weights.any():
        # The mean of no losses is nan; its gradient is 0.
        return Tensor(np.full((), np.nan, losses.dtype))
    return Tensor(losses.sum())


def _soft_cross_entropy(
    scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, axis: int
) -> Tensor:
    _same_shape("cross_entropy", scores, target)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / scores.shape[axis]
    if weight is not None:
        target = target * weight.reshape(-1, *(1,) * (scores.ndim - axis - 1))
    losses = -total(scores * target, axis)
    return reduced(losses, reduction)


def _uniform_cross_entropy(
    scores: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, axis: int
) -> Tensor:
    classes = target._array
    counted = classes != ignore_index
    per_class = np.ones(scores.shape[axis], scores.dtype) if weight is None else weight._array
    shaped = Tensor(per_class.reshape(-1, *(1,) * (scores.ndim - axis - 1)))
    losses = where(Tensor(counted), total(scores * shaped, axis), 0) / -scores.shape[axis]
    if reduction != "mean":
        return reduced(losses, reduction)
    return total(losses) / float((counted * per_class[np.where(counted, classes, 0)]).sum())


def _index_and_weights(
    x: Array, classes: Array, axis: int, weight: Tensor | None, ignore_index: int, reduction: str
) -> tuple[Any, Array, bool]:
    """Return the index of the targets' elements in ``x``, the weight of the loss of each, and whether none is 0."""
    check_reduction(reduction)
    if _check_classes(x, classes, axis, ignore_index) and weight is None:
        share = 1 / (classes.size or 1) if reduction == "mean" else 1
        return _class_index(classes, axis), np.full(classes.shape, share, x.dtype), True
    counted = classes != ignore_index
    safe = np.where(counted, classes, 0)
    if weight is not None and weight.shape != (x.shape[axis],):
        raise ValueError(f"the weight must have shape ({x.shape[axis]},), one for each class, not {weight.shape}")
    weights = counted.astype(x.dtype) if weight is None else counted * weight._array.astype(x.dtype)[safe]
    if reduction == "mean":
        weights = np.asarray(weights / (weights.sum() or 1), x.dtype)
    return _class_index(safe, axis), np.asarray(weights), bool(weights.all())


def _check_classes(x: Array, classes: Array, axis: int, ignore_index: int) -> bool:
    """Return whether every target is a class, so that none is ignored.

    Raises:
        ValueError: the shapes do not fit.
        TypeError: the targets are not integers.
        IndexError: a target is neither a class nor ignored.
    """
    if not x.ndim or classes.shape != x.shape[:axis] + x.shape[axis + 1 :]:
        raise ValueError(
            f"an input of shape {x.shape} (N, C, ...) does not fit targets of shape {classes.shape} (N, ...)"
        )
    if classes.dtype.kind not in "iu":
        raise TypeError(f"class indices must be integers, not {classes.dtype}")
    count = x.shape[axis]
    if classes.size and not 0 <= ignore_index < count and holds(within, classes, count):
        return True
    wrong = (classes != ignore_index) & ((classes < 0) | (classes >= count))
    if wrong.any():
        raise IndexError(f"target {classes[wrong].flat[0]} is not a class: there are {count}, counted from 0")
    return False


def _class_index(classes: Array, axis: int) -> tuple[Any, ...]:
    others = _numbers(classes.shape)
    return (*others[:axis], classes, *others[axis:])


@lru_cache(maxsize=64)
def _numbers(shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return the numbers of the elements in each dimension, to be broadcast to ``shape``."""
    return tuple(np.indices(shape, sparse=True))


def check_broadcast(name: str, input: Tensor, target: Tensor) -> None:
    """Warn if the shapes differ: broadcasting a target is usually a mistake.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    if input.shape == target.shape:
        return
    try:
        shape = np.broadcast_shapes(input.shape, target.shape)
    except ValueError:
        _same_shape(name, input, target)
    warnings.warn(
        f"{name}() broadcasts an input of shape {input.shape} and a target of shape {target.shape} to {shape}; "
        "give both one shape, or broadcast them yourself",
        stacklevel=4,
    )


def _same_shape(name: str, a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape:
        raise ValueError(f"{name}() needs an input and a target of one shape, and you gave {a.shape} and {b.shape}")
