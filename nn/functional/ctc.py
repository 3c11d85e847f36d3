"""Connectionist temporal classification: the likelihood of label sequences whose alignment with the input is unknown.

The forward-backward algorithm of Graves, Fernandez, Gomez, Schmidhuber: "Connectionist Temporal Classification" (ICML
2006), section 4.1, in logarithms. All sequences of a batch are worked on at once; the loop is over time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.errors import AutogradError
from ...core.extend import Array, Row, Tensor, keep, operation, record, records, reduced
from .reduction import chosen_reduction

__all__ = ["ctc_loss"]

Lengths = Tensor | Sequence[int]


def _rule(
    xp: Any, g: Any, a: Any, alpha: Array, losses: Array, labels: Array, lengths: Any, zero_infinity: bool
) -> Any:
    if not isinstance(a, np.ndarray):
        raise AutogradError(
            "ctc_loss() cannot be differentiated twice; call backward or grad without create_graph=True"
        )
    steps, ends = lengths
    emitted = np.take_along_axis(a, np.broadcast_to(labels, (len(a), *labels.shape)), axis=2)
    beta = _forward(emitted[::-1, :, ::-1], labels[:, ::-1], _last_first(len(a), labels.shape[1], steps, ends))
    together = alpha + beta[::-1, :, ::-1] - emitted + losses[:, None]
    inside = np.arange(len(a))[:, None, None] < steps[:, None]
    share = np.where(inside & np.isfinite(alpha), np.exp(together), 0)
    if zero_infinity:
        share = np.where(np.isinf(losses)[:, None], 0, share)
    result = np.zeros(a.shape, a.dtype)
    times, rows = np.arange(len(a))[:, None, None], np.arange(a.shape[1])[:, None]
    np.add.at(result, (times, rows, labels), -share * np.asarray(g)[..., None])
    return result


_CTC = Row("ctc_loss", _rule)


@operation
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return the negative log-likelihood of the labels ``targets``, summed over all their alignments with the input.

    It cannot be differentiated twice.

    Args:
        log_probs: shape (T, N, C) or (T, C), floating-point: the logarithms of the classes' probabilities at each time.
        targets: labels, shape (N, S), or all sequences one after the other as a vector.
        input_lengths: number of times of each sequence, shape (N,) or ().
        target_lengths: number of labels of each sequence, shape (N,) or ().
        blank: the class that means no label.
        reduction: "mean" (each loss is divided by its number of labels first), "sum" or "none".
        zero_infinity: whether the loss of more labels than fit, and its gradient, are 0 instead of infinite.

    Returns:
        A scalar, or for "none" shape (N,).

    Raises:
        ValueError: the shapes or lengths do not fit, or an unknown reduction.
    """
    if log_probs.dtype.itemsize == 2:
        losses = ctc_loss(log_probs.float(), targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
        return losses.to(log_probs.dtype)
    reduction = chosen_reduction(None, None, reduction)
    batched = log_probs if log_probs.ndim == 3 else log_probs.unsqueeze(1)
    x = batched.numpy(force=True)
    steps, sizes = (
        _lengths("input_lengths", input_lengths, x.shape[1]),
        _lengths("target_lengths", target_lengths, x.shape[1]),
    )
    labels = _extended(targets.numpy(), sizes, blank, x.shape[2])
    if steps.size and steps.max() > len(x):
        raise ValueError(f"input_lengths must be at most {len(x)}, the input's length, and one is {steps.max()}")
    emitted = np.take_along_axis(x, np.broadcast_to(labels, (len(x), *labels.shape)), axis=2)
    start = np.arange(labels.shape[1]) < np.minimum(2, 2 * sizes + 1)[:, None]
    alpha = _forward(emitted, labels, [start] + [None] * (len(x) - 1))
    ends = 2 * sizes
    likelihoods = _at_end(alpha, steps, ends)
    result = Tensor(np.where(np.isinf(likelihoods), 0, -likelihoods) if zero_infinity else -likelihoods)
    if records(batched):
        record(_CTC, result, (batched,), (keep(batched),), alpha, -likelihoods, labels, (steps, ends), zero_infinity)
    if reduction == "mean":
        result = result / Tensor(np.maximum(sizes, 1).astype(x.dtype))
    return reduced(result if log_probs.ndim == 3 else result.reshape(()), reduction)


def _forward(emitted: Array, labels: Array, starts: Sequence[Array | None]) -> Array:
    """Return the logarithms of the probabilities of all prefixes, shape (T, N, L); sequences begin at their ``starts``."""
    alpha = np.full(emitted.shape, -np.inf, emitted.dtype)
    # A label may follow the one before it without a blank between them, unless they are equal.
    skips = np.zeros(labels.shape, bool)
    skips[:, 2:] = labels[:, 2:] != labels[:, :-2]
    before = alpha[0]
    for time, start in enumerate(starts):
        reached = before.copy()
        reached[:, 1:] = np.logaddexp(reached[:, 1:], before[:, :-1])
        reached[:, 2:] = np.logaddexp(reached[:, 2:], np.where(skips[:, 2:], before[:, :-2], -np.inf))
        if start is not None:
            reached = np.where(start, 0, reached)
        before = alpha[time] = reached + emitted[time]
    return alpha


def _last_first(total: int, size: int, steps: Array, ends: Array) -> list[Array | None]:
    """Return where the sequences begin when they are read backwards: at their last step, with their last label or blank."""
    numbers = size - 1 - np.arange(size)
    last = (numbers == ends[:, None]) | (numbers == ends[:, None] - 1)
    return [last & (steps == total - time)[:, None] for time in range(total)]


def _at_end(alpha: Array, steps: Array, ends: Array) -> Array:
    if not len(alpha):
        return np.where(ends == 0, 0.0, -np.inf).astype(alpha.dtype)
    rows = np.arange(len(steps))
    final = alpha[np.maximum(steps - 1, 0), rows]
    without_blank = np.where(ends > 0, final[rows, np.maximum(ends - 1, 0)], -np.inf)
    result = np.logaddexp(final[rows, ends], without_blank).astype(alpha.dtype)
    return np.where(steps > 0, result, np.where(ends == 0, 0.0, -np.inf)).astype(alpha.dtype)


def _extended(targets: Array, sizes: Array, blank: int, classes: int) -> Array:
    """Return the labels with blanks around each, shape (N, 2 * longest + 1), filled with blanks behind each sequence."""
    longest = int(sizes.max(initial=0))
    if targets.ndim == 2 and len(targets) == len(sizes) and longest <= targets.shape[1]:
        rows = [row[:size] for row, size in zip(targets, sizes)]
    elif targets.ndim == 1 and targets.size == sizes.sum():
        rows = np.split(targets, np.cumsum(sizes)[:-1])
    else:
        raise ValueError(f"targets of shape {targets.shape} do not fit target_lengths {sizes.tolist()}")
    result = np.full((len(sizes), 2 * longest + 1), blank)
    for number, row in enumerate(rows):
        result[number, 1 : 2 * len(row) : 2] = row
    if not 0 <= blank < classes or (result.size and (result.min() < 0 or result.max() >= classes)):
        raise ValueError(f"targets and blank must be from 0 to {classes - 1}, the classes of the input")
    return result


def _lengths(name: str, given: Any, count: int) -> Array:
    lengths = np.asarray(given.numpy() if isinstance(given, Tensor) else given)
    if lengths.dtype.kind not in "iu" or lengths.size != count or (lengths < 0).any():
        raise ValueError(f"{name} must be {count} integers, one for each sequence, and you gave {lengths.tolist()}")
    return lengths.reshape(-1).astype(np.int64)
