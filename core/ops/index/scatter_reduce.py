"""The reductions of ``scatter_reduce`` with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..table.nodes import keep, keep_result, record, records
from ..table.rows import ARRAYS, TENSORS, Row
from .array_elements import LinearIndex, add_at, apply_at, read_at, without, write_at
from .elements import CLEAR, accumulate

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def reduced(input: Tensor, where: LinearIndex, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Return a copy of ``input`` with each element combined with the elements of ``source`` whose index names it.

    Args:
        input: any shape and dtype.
        where: index in ``input`` of each element of ``source``.
        source: of the shape of the index.
        reduce: one of ``REDUCTIONS``.
        include_self: whether elements of ``input`` are combined with those of ``source``; else they are replaced.

    Raises:
        TypeError: ``reduce`` is "amax" or "amin", and the dtype complex.
        ValueError: another ``reduce``.
    """
    if reduce not in REDUCTIONS:
        raise ValueError(f"scatter_reduce() takes reduce {', '.join(REDUCTIONS)}, and you gave {reduce!r}")
    if reduce == "sum":
        return accumulate(input if include_self else CLEAR(input, where), where, source, False)
    if reduce == "mean":
        total = accumulate(input if include_self else CLEAR(input, where), where, source, False)
        return _divided(total, _counts(input._array, where, source.shape, include_self))
    if reduce == "prod":
        return scatter_product(input if include_self else _with_ones(input, where), where, source)
    return _extreme(input, where, source, reduce, include_self)


def _counts(x: Array, where: LinearIndex, shape: tuple[int, ...], include_self: bool) -> Array:
    count = np.ones(x.shape, np.int64) if include_self else without(np.ones(x.shape, np.int64), where)
    return add_at(count, where, np.ones(shape, np.int64))


def _divided(total: Tensor, count: Array) -> Tensor:
    if total.dtype.kind in "iu":
        return Tensor(total._array // count.astype(total.dtype))
    return total / Tensor(count.astype(total.dtype))


def _with_ones(input: Tensor, where: LinearIndex) -> Tensor:
    ones = np.ones(input.shape, input.dtype)
    return CLEAR(input, where) + Tensor(
        ones ^ without(ones, where) if input.dtype.kind == "b" else ones - without(ones, where)
    )


def scatter_product(input: Tensor, where: LinearIndex, source: Tensor) -> Tensor:
    """Return a copy of ``input`` with each element multiplied by the elements of ``source`` whose index names it.

    Args:
        input: any shape and dtype.
        where: index in ``input`` of each element of ``source``.
        source: of the shape of the index.
    """
    result = Tensor(_product(input._array, where, source._array))
    if records(input, source):
        saved = (keep(input), keep(source), keep_result(result))
        record(_PRODUCT, result, (input, source), saved, where)
    return result


def _product(x: Array, where: LinearIndex, source: Array) -> Array:
    return apply_at(np.multiply, np.array(x, order="C"), where, source)


def _product_of_input(xp: Any, g: Any, x: Any, source: Any, out: Any, where: LinearIndex) -> Any:
    # The product of the sources alone: without a division, zeros need no special case.
    ones = np.ones(g.shape, g.dtype)
    return g * xp.scatter_product(ones if isinstance(source, np.ndarray) else Tensor(ones), where, source)


def _product_of_source(xp: Any, g: Any, x: Any, source: Any, out: Any, where: LinearIndex) -> Any:
    values = source if isinstance(source, np.ndarray) else source._array
    zero = values == 0
    if not zero.any():
        return xp.get(g * out, where) / source
    # Where exactly one source is zero, its gradient is the product of the others; with more, all are zero.
    zeros = add_at(np.zeros(g.shape, np.int64), where, zero.astype(np.int64)).take(where.indices)
    others = xp.scatter_product(x, where, xp.where(zero & (zeros == 1), 1.0, source))
    lone = zero & (zeros == 1)
    divided = xp.get(g * out, where) / xp.where(zero, 1.0, source)
    return xp.where(lone, xp.get(g * others, where), divided)


ARRAYS.scatter_product, TENSORS.scatter_product = _product, scatter_product
_PRODUCT = Row("scatter_product", _product_of_input, _product_of_source)


def _extreme(input: Tensor, where: LinearIndex, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    x, values = input._array, source._array
    if x.dtype.kind == "c":
        raise TypeError(f"scatter_reduce() finds no {reduce} of complex numbers, which have no order")
    ufunc = np.maximum if reduce == "amax" else np.minimum
    out = np.array(x, order="C")
    if not include_self:
        write_at(out, where, _bounds(x.dtype)[reduce == "amin"])
    apply_at(ufunc, out, where, values)
    result = Tensor(out)
    if records(input, source):
        won = (x == out) if include_self else (x == out) & without(np.ones(x.shape, bool), where)
        source_won = values == read_at(out, where)
        share = add_at(won.astype(x.dtype), where, source_won.astype(x.dtype))
        share = 1 / np.maximum(share, 1)
        record(_EXTREME, result, (input, source), (), where, won * share, source_won * read_at(share, where))
    return result


def _bounds(dtype: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest number of a dtype."""
    if dtype.kind == "b":
        return False, True
    return (-np.inf, np.inf) if dtype.kind in "fV" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


# Equal extremes share the gradient evenly.
_EXTREME = Row(
    "scatter_extreme",
    lambda xp, g, where, share, source_share: xp.chosen(share != 0, g * share),
    lambda xp, g, where, share, source_share: xp.chosen(source_share != 0, xp.get(g, where) * source_share),
    holomorphic=False,
)
