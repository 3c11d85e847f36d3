"""``embedding``: rows of a table, looked up by their indices."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import Any

import numpy as np

from ... import core
from ...core import no_grad
from ...core.extend import Array, Row, Tensor, record, records, watched

__all__ = ["embedding"]


def _sparse_rows(xp: Any, g: Any, shape: tuple[int, ...], rows: Array, share: Array) -> Tensor:
    """Return the gradient of the table as a sparse tensor of the rows that were looked up."""
    from ...core.sparse import SparseTensor

    taking = np.flatnonzero(share)
    elements = xp.get(xp.reshape(g, (rows.size, shape[1])), (taking,)) * share.reshape(-1, 1)[taking]
    return SparseTensor(
        rows.reshape(1, -1)[:, taking], elements if isinstance(elements, Tensor) else Tensor(elements), shape
    )


_EMBEDDING = Row(
    "embedding", lambda xp, g, shape, rows, share: xp.add_rows(shape, rows, xp.chosen(share != 0, g * share))
)
_SPARSE_EMBEDDING = Row("embedding", _sparse_rows)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of ``weight`` whose indices are in ``input``.

    Args:
        input: indices, integers of any shape (...).
        weight: table of shape (rows, width).
        padding_idx: index of a row that gets no gradient; a negative one counts from the end.
        max_norm: rows that are looked up and longer than this are first scaled down to it, in place.
        norm_type: order of the norm for ``max_norm``.
        scale_grad_by_freq: whether a row's gradient is divided by how often it was looked up.
        sparse: whether the table's gradient is a sparse tensor that holds only the rows looked up.

    Returns:
        Shape (..., width), of the table's dtype.

    Raises:
        IndexError: an index is out of range.
        ValueError: ``padding_idx`` is out of range.
    """
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    result = core.embedding(weight, input)
    if (padding_idx is None and not scale_grad_by_freq and not sparse) or not records(weight):
        return result
    rows = input.numpy()
    share = _shares(rows, weight, padding_idx, scale_grad_by_freq)
    row = _SPARSE_EMBEDDING if sparse else _EMBEDDING
    result = Tensor(result.numpy(force=True))
    return watched(record(row, result, (weight,), (), weight.shape, rows, share), input)


def row_number(index: int, rows: int) -> int:
    """Return ``padding_idx`` counted from 0.

    Raises:
        ValueError: it is out of range.
    """
    if not -rows <= index < rows:
        raise ValueError(f"embedding(): padding_idx must be within the {rows} rows of the table, and you gave {index}")
    return index % rows


def _shares(rows: Array, weight: Tensor, padding_idx: int | None, by_frequency: bool) -> Array:
    """Return the factor of the gradient of each row that was looked up, shape (*rows.shape, 1)."""
    share = np.ones(rows.shape, weight.dtype)
    if by_frequency:
        share /= np.bincount(rows.reshape(-1), minlength=1)[rows]
    if padding_idx is not None:
        share[rows == row_number(padding_idx, len(weight))] = 0
    return share[..., None]


def _shorten_rows(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    rows = np.unique(input.numpy())
    with no_grad():
        table = weight.numpy(force=True)[rows]
        norms = np.linalg.norm(table, norm_type, axis=1)
        long = norms > max_norm
        if long.any():
            weight[rows[long]] = Tensor(table[long] * (max_norm / (norms[long] + 1e-7))[:, None].astype(table.dtype))
