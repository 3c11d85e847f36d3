"""``embedding_bag``: sums, means and maxima over bags of rows of a table."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import warnings

import numpy as np

from ...core.extend import TENSORS, Array, Tensor
from .embedding import embedding, row_number

__all__ = ["embedding_bag"]

MODES = ("sum", "mean", "max")


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of ``weight`` in each bag; zeros for an empty bag.

    Args:
        input: indices of rows: a bag in each row, shape (bags, n), or all bags one after the other, shape (n,).
        weight: table of shape (rows, width).
        offsets: index of each bag's first element in an ``input`` of one dimension, shape (bags,); the first is 0.
        max_norm: rows that are looked up and longer than this are first scaled down to it, in place.
        norm_type: order of the norm for ``max_norm``.
        scale_grad_by_freq: whether a row's gradient is divided by how often it was looked up.
        mode: "sum", "mean" or "max".
        sparse: whether the table's gradient is a sparse tensor that holds only the rows looked up.
        per_sample_weights: factors of the rows, of the shape of ``input``; with "sum" only.
        include_last_offset: whether the last offset is the end of the last bag.
        padding_idx: index of a row that is left out.

    Returns:
        Shape (bags, width), of the table's dtype.

    Raises:
        IndexError: a row is out of range.
        ValueError: the mode is unknown, or offsets or weights do not fit the input.
        NotImplementedError: ``per_sample_weights`` with another mode than "sum".
    """
    if weight.dtype.kind in "iu" and input.is_floating_point():
        warnings.warn(
            "embedding_bag() takes the input first and the table second; give them in that order", stacklevel=2
        )
        return embedding_bag(
            weight, input, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights,
            include_last_offset, padding_idx,
        )  # fmt: skip
    _check(input, offsets, mode, sparse, scale_grad_by_freq, per_sample_weights)
    rows, bags, count = _bags(input, offsets, include_last_offset)
    kept = np.arange(len(rows)) if padding_idx is None else np.flatnonzero(rows != row_number(padding_idx, len(weight)))
    bags = bags[kept]
    found = embedding(Tensor(rows[kept]), weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        found = found * per_sample_weights.reshape(-1)[kept].unsqueeze(1)
    if mode == "max":
        return _largest(found, bags, count)
    total = _added_up(found, bags, count)
    if mode == "sum":
        return total
    return total / Tensor(np.maximum(np.bincount(bags, minlength=count), 1).astype(total.dtype)[:, None])


def _check(
    input: Tensor,
    offsets: Tensor | None,
    mode: str,
    sparse: bool,
    scale_grad_by_freq: bool,
    per_sample_weights: Tensor | None,
) -> None:
    if mode not in MODES:
        raise ValueError(f'embedding_bag(): mode must be "sum", "mean" or "max", and you gave {mode!r}')
    if mode == "max" and (sparse or scale_grad_by_freq):
        raise ValueError('embedding_bag(): mode "max" takes neither sparse=True nor scale_grad_by_freq=True')
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f'per_sample_weights are there for mode "sum" only, and you gave {mode!r}')
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"per_sample_weights must have the shape of the input, {input.shape}, not {per_sample_weights.shape}"
        )
    if input.ndim not in (1, 2):
        raise ValueError(f"embedding_bag() takes an input of 1 or 2 dimensions, not of shape {input.shape}")
    if (input.ndim == 1) != (offsets is not None):
        raise ValueError(
            "embedding_bag() needs offsets for an input of 1 dimension, and takes none for one of 2, in which each row is a "
            f"bag; the input has shape {input.shape}"
        )


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Array, Array, int]:
    """Return all indices, the bag of each, and the number of bags."""
    rows = input.numpy()
    if offsets is None:
        return rows.reshape(-1), np.repeat(np.arange(len(rows)), rows.shape[1]), len(rows)
    starts = offsets.numpy()
    if starts.ndim != 1 or (include_last_offset and not starts.size):
        raise ValueError(
            f"offsets must be a vector, with include_last_offset not empty, and yours are {starts.tolist()}"
        )
    ends = starts[1:] if include_last_offset else np.append(starts[1:], len(rows))[: len(starts)]
    starts = starts[: len(ends)]
    if starts.size and (starts[0] != 0 or (ends < starts).any() or ends[-1] > len(rows)):
        raise ValueError(
            f"embedding_bag(): offsets must rise from 0 to at most {len(rows)}, and yours are {offsets.tolist()}"
        )
    end = int(ends[-1]) if ends.size else 0
    return rows[:end], np.repeat(np.arange(len(ends)), ends - starts), len(ends)


def _added_up(found: Tensor, bags: Array, count: int) -> Tensor:
    return TENSORS.add_rows((count, found.shape[1]), bags, found)


def _largest(found: Tensor, bags: Array, count: int) -> Tensor:
    """Return the largest element of each bag and column; of equal ones, the first gets the gradient."""
    values = found.numpy(force=True)
    if not values.size:
        return _added_up(found, bags, count)
    starts = np.flatnonzero(np.diff(bags, prepend=-1))
    largest = np.maximum.reduceat(values, starts, axis=0)[np.cumsum(np.diff(bags, prepend=-1) > 0) - 1]
    matching = (values == largest) | np.isnan(values)
    numbers = np.where(matching, np.arange(len(values))[:, None], len(values))
    first = np.minimum.reduceat(numbers, starts, axis=0)
    return _added_up(found[first, np.arange(values.shape[1])], bags[starts], count)
