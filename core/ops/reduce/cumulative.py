"""Cumulative sums, products and extremes in a dimension, and differences of neighbours."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...array_like import ArrayLike, as_array, write
from ...dtypes import to_float, wide_type
from ...tensors import Tensor
from ...types import Array
from ..create.from_data import as_tensor
from ..elementwise import bitwise, operators
from ..elementwise.conversion import clone, to
from ..elementwise.exponential import logaddexp_of
from ..index import indexing
from ..shape import joining
from ..table.dims import ValuesIndices, one_dim
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import ARRAYS, TENSORS, Row
from .extremes import watched_pair


def recurrence(x: Array, factors: Array, dim: int) -> Array:
    """Return y with ``y[0] = x[0]`` and ``y[i] = x[i] + factors[i] * y[i - 1]`` in the dimension ``dim``."""
    result = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, factors.shape)), wide_type(x.dtype))
    steps, scales = np.moveaxis(result, dim, 0), np.moveaxis(factors, dim, 0)
    for index in range(1, len(steps)):
        steps[index] += scales[index] * steps[index - 1]
    return result.astype(x.dtype, copy=False)


def recorded_recurrence(x: Tensor, factors: Tensor, dim: int) -> Tensor:
    """Return ``recurrence`` of tensors, recorded."""
    result = Tensor(recurrence(x._array, factors._array, dim))
    if not records(x, factors):
        return result
    return record(_RECURRENCE, result, (x, factors), (keep(factors), keep_result(result)), dim)


def backwards(xp: Any, a: Any, dim: int) -> Any:
    """Return ``a`` with the dimension ``dim`` reversed."""
    return xp.get(a, (slice(None),) * dim + (slice(None, None, -1),))


def _shifted(xp: Any, a: Any, dim: int, fill: float) -> Any:
    """Return ``a`` shifted by one index in the dimension ``dim``: ``fill``, a[0], a[1], ..."""
    first = xp.get(a, (slice(None),) * dim + (slice(0, 1),))
    return xp.concatenate([xp.zeros_like(first) + fill, xp.get(a, (slice(None),) * dim + (slice(None, -1),))], dim)


def _adjoint(xp: Any, g: Any, factors: Any, dim: int) -> Any:
    """Return z with ``z[i] = g[i] + factors[i + 1] * z[i + 1]``: the recurrence from the end."""
    return backwards(
        xp, xp.recurrence(backwards(xp, g, dim), _shifted(xp, backwards(xp, factors, dim), dim, 0.0), dim), dim
    )


def product_rule(xp: Any, g: Any, a: Any, out: Any, dim: int | None) -> Any:
    """Return the gradient of a product over ``dim``; ``g`` and ``out`` have length 1 there."""
    if not (a == 0).any():
        return g * out / a
    if dim is None:
        flat = product_rule(xp, xp.reshape(g, (1,)), xp.reshape(a, (-1,)), xp.reshape(out, (1,)), 0)
        return xp.reshape(flat, a.shape)
    nothing = xp.get(xp.zeros_like(a), (slice(None),) * dim + (slice(1, None),))
    ends = xp.concatenate([nothing, g], dim)
    return _products_rule(xp, ends, a, dim)


def _products_rule(xp: Any, g: Any, a: Any, dim: int) -> Any:
    # The gradient of a factor is the product of the factors before it, times the sum of the later gradients, each multiplied
    # by the factors in between. There is no division, so zeros are no problem.
    before = _shifted(xp, xp.cumprod(a, dim), dim, 1.0)
    return before * _adjoint(xp, g, a, dim)


def _cumprod_rule(xp: Any, g: Any, a: Any, out: Any, dim: int) -> Any:
    if not (a == 0).any():
        return xp.cumsum_from_end(g * out, dim) / a
    if xp is TENSORS:
        return _products_rule(xp, g, a, dim)
    # By the number of zeros so far: behind the first zero every gradient is 0, even beside nan and infinity.
    zeros = np.cumsum(a == 0, dim)
    none = zeros == 0
    before = _cumprod_rule(xp, xp.where(none, g, 0.0), xp.where(none, a, 1.0), xp.where(none, out, 0.0), dim)
    first = _products_rule(xp, xp.where(zeros == 1, g, 0.0), xp.where(zeros < 2, a, 0.0), dim)
    return xp.where(none, before, xp.where((zeros == 1) & (a == 0), first, 0.0))


def _logcumsumexp_rule(xp: Any, g: Any, a: Any, out: Any, dim: int) -> Any:
    # The sums grow, so no exponent is positive and there is no overflow.
    before = _shifted(xp, out, dim, -np.inf)
    factors = xp.exp(xp.where(before == out, 0.0, before - out))
    return xp.exp(xp.where(a == out, 0.0, a - out)) * _adjoint(xp, g, factors, dim)


def _chosen_rule(xp: Any, g: Any, shape: tuple[int, ...], dim: int, index: Any, hits: Any) -> Any:
    if xp is not ARRAYS or g.itemsize < 4 or not g.size:
        return xp.put_along(shape, dim, index, g)
    result = np.zeros(shape, g.dtype, like=index if isinstance(index, ArrayLike) else g)
    write(add_runs, result, g, hits, dim)
    return result


def add_runs(result: Array, g: Array, hits: Array, dim: int) -> None:
    """Write the sums of runs of gradients, in which the index of the extreme is the same, to where the runs begin.

    Args:
        result: zeros, of the shape of ``g``.
        g: gradients.
        hits: whether a run begins there; the first elements in the dimension ``dim`` begin one.
        dim: the dimension.
    """
    rows = np.moveaxis(hits, dim, -1)
    starts = np.flatnonzero(rows)
    sums = np.zeros(rows.shape, g.dtype)
    sums.reshape(-1)[starts] = np.add.reduceat(np.moveaxis(g, dim, -1).reshape(-1), starts)
    result[...] = np.moveaxis(sums, -1, dim)


_RECURRENCE = Row(
    "recurrence",
    lambda xp, g, factors, out, dim: _adjoint(xp, g, factors, dim),
    lambda xp, g, factors, out, dim: _adjoint(xp, g, factors, dim) * _shifted(xp, out, dim, 0.0),
)
_CUMSUM = Row("cumsum", lambda xp, g, dim: xp.cumsum_from_end(g, dim))
_CUMPROD = Row("cumprod", _cumprod_rule)
_LOGCUMSUMEXP = Row("logcumsumexp", _logcumsumexp_rule)
_CHOSEN = Row("cummax", _chosen_rule)


@operation(method=True, in_place="overwrite")
def cumsum(input: Tensor, dim: int, *, dtype: npt.DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """Return the cumulative sums in the dimension ``dim``; ``int64`` for booleans and integers.

    Args:
        input: any shape.
        dim: the dimension; negative ones count from the end.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        out: where the result is written.
    """
    input, x, axis = _prepared(input, dim, dtype)
    if not x.ndim:
        return to(clone(input), x.dtype)
    result = Tensor(_cumulative_sum(x, axis))
    if records(input):
        record(_CUMSUM, result, (input,), (), axis)
    return result


@operation(method=True, in_place=True)
def cumprod(input: Tensor, dim: int, *, dtype: npt.DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """Return the cumulative products in the dimension ``dim``; ``int64`` for booleans and integers.

    Args:
        input: any shape.
        dim: the dimension; negative ones count from the end.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        out: where the result is written.
    """
    input, x, axis = _prepared(input, dim, dtype)
    if not x.ndim:
        return to(clone(input), x.dtype)
    result = Tensor(_cumulative_product(x, axis))
    if records(input):
        record(_CUMPROD, result, (input,), (keep(input), keep_result(result)), axis)
    return result


_LARGE = 1 << 15  # elements, from which on cumulative results of float32 numbers are computed several at once
_LONG, _WIDE_STEP = (
    64,
    16,
)  # lengths, of the dimension if it is the last, and of those behind it, from which on that is faster
_BLOCK, _WHOLE = 8, 32  # elements that one product adds up; of a row, and of a whole row


def _cumulative_sum(x: Array, axis: int, step: int = 1) -> Array:
    """Return the cumulative sums, from the end if ``step`` is -1."""
    if axis == x.ndim - 1 > 0 and _is_large(x, axis):
        return _sums_of_blocks(x, step)
    if step < 0:
        return as_array(backwards(ARRAYS, _cumulative_sum(backwards(ARRAYS, x, axis), axis), axis))
    return _accumulated(np.add, x, axis)


def _is_large(x: Array, axis: int) -> bool:
    if x.dtype != np.float32 or x.size < _LARGE:
        return False
    return x.shape[-1] >= _LONG if axis == x.ndim - 1 else math.prod(x.shape[axis + 1 :]) >= _WIDE_STEP


def _sums_of_blocks(x: Array, step: int) -> Array:
    """Return the sums of ``float32`` numbers over the last dimension, in ``float64``, from the end if ``step`` is -1."""
    result = np.empty(x.shape, x.dtype, like=x)
    write(write_sums, result, x, step)
    return result


def write_sums(result: Array, x: Array, step: int) -> None:
    """Write the cumulative sums over the last dimension of ``x`` into ``result``, some rows after the other."""
    length = x.shape[-1]
    sums, rows = result.reshape(-1, length), x.reshape(-1, length)
    count = max(1, _LARGE * 2 // length)  # their blocks stay in the cache
    for start in range(0, len(rows), count):
        part = slice(start, start + count)
        found = _block_sums(rows[part].astype(np.float64), step)
        if not np.isfinite(found[:, -1 if step > 0 else 0]).all():  # 0 times infinity would be nan
            found = np.add.accumulate(rows[part, ::step], 1, np.float64)[:, ::step]
        sums[part] = found


def _block_sums(rows: Array, step: int) -> Array:
    """Return the cumulative sums of rows, which are overwritten.

    The sum of the blocks before is added to the first element of a block. Then all blocks are multiplied by a triangle of
    ones: no addition waits for those of another block.
    """
    count, length = rows.shape
    if length <= _WHOLE:
        return np.asarray(rows @ _triangle(length, step))
    if length % _BLOCK:
        rows = np.pad(rows, ((0, 0), (0, -length % _BLOCK)))
    blocks = rows.reshape(-1, _BLOCK)
    sums = _block_sums((blocks @ np.ones(_BLOCK)).reshape(count, -1), step)
    numbers = rows.reshape(count, -1, _BLOCK)
    if step > 0:
        numbers[:, 1:, 0] += sums[:, :-1]
    else:
        numbers[:, :-1, -1] += sums[:, 1:]
    return np.asarray((blocks @ _triangle(_BLOCK, step)).reshape(rows.shape)[:, :length])


@lru_cache(maxsize=64)
def _triangle(length: int, step: int) -> Array:
    """Return the matrix by which the product with a row is its cumulative sums, from the end if ``step`` is -1."""
    return np.asarray(np.tri(length)[::-step, ::-step])


def _accumulate_halves(function: Any, x: Array, axis: int, levels: int) -> None:
    """Overwrite ``x`` by its cumulative results: those of neighbours as pairs first, then the ones in between.

    A step that waits for the one before takes several times as long as one that does not.

    Args:
        function: a function of NumPy of two arguments.
        x: array to overwrite.
        axis: the dimension.
        levels: of pairs of pairs, at most.
    """
    length = x.shape[axis]
    if length < 2 or not levels or (axis == x.ndim - 1 and length < _LONG):
        function.accumulate(x, axis, out=x)
        return
    even, odd = x[_at(axis, slice(0, None, 2))], x[_at(axis, slice(1, None, 2))]
    pairs = function(even[_at(axis, slice(odd.shape[axis]))], odd)
    _accumulate_halves(function, pairs, axis, levels - 1)
    later = even[_at(axis, slice(1, None))]
    function(pairs[_at(axis, slice(later.shape[axis]))], later, out=later)
    odd[...] = pairs


def _at(axis: int, *index: Any) -> Any:
    """Return the index that takes all of the dimensions before ``axis``."""
    return (slice(None),) * axis + index


def _cumulative_product(x: Array, axis: int) -> Array:
    return _accumulated(np.multiply, x, axis)


# By the character of the dtype; "E" is bfloat16.
_WIDE = {"e": np.float32, "E": np.float32, "f": np.float64, "F": np.complex128}


# An infinite product of later numbers, behind a 0, would make nan: in float64 those of eight float32 numbers are finite.
_LEVELS = {np.add: 64, np.multiply: 3}


def _accumulated(function: Any, x: Array, axis: int) -> Array:
    # As PyTorch: one by one, rounding errors add up. A million times 0.1 in float32 would be 100,958.
    wide = x.astype(_WIDE.get(x.dtype.char, x.dtype), copy=False)
    if function is not np.logaddexp and _is_large(x, axis):
        _accumulate_halves(function, wide, axis, _LEVELS[function])
        return as_array(wide.astype(x.dtype))
    return np.asarray(function.accumulate(wide, axis, wide.dtype)).astype(x.dtype, copy=False)


def _log_sums(x: Array, axis: int) -> Array:
    if x.dtype.kind != "c":
        return _accumulated(np.logaddexp, x, axis)
    rows = np.moveaxis(x, axis, 0)
    return np.moveaxis(np.array(list(itertools.accumulate(rows, logaddexp_of)), x.dtype), 0, axis)


def _prepared(input: Tensor, dim: int, dtype: Any) -> tuple[Tensor, Array, int]:
    if dtype is not None:
        input = to(input, dtype)
    x = input._array
    if x.dtype.kind in "biu" and dtype is None:
        x = x.astype(np.int64, copy=False)
    return input, x, one_dim(dim, x.ndim)


@operation(method=True)
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(cumsum(exp(input), dim))``, without overflow.

    Args:
        input: any shape.
        dim: the dimension; negative ones count from the end.
        out: where the result is written.
    """
    x, axis = to_float(input._array), one_dim(dim, input._array.ndim)
    if not x.ndim:
        return to(clone(input), x.dtype)
    result = Tensor(_log_sums(x, axis) if x.size else x.copy())
    if records(input):
        record(_LOGCUMSUMEXP, result, (input,), (keep(input), keep_result(result)), axis)
    return result


@operation(method=True)
def cummax(input: Tensor, dim: int) -> ValuesIndices:
    """Return the cumulative maximum in the dimension ``dim`` and the last index of it; nan counts as the largest number."""
    return _running(np.maximum, input, dim)


@operation(method=True)
def cummin(input: Tensor, dim: int) -> ValuesIndices:
    """Return the cumulative minimum in the dimension ``dim`` and the last index of it; nan counts as the smallest number."""
    return _running(np.minimum, input, dim)


def _running(function: Any, input: Tensor, dim: int) -> ValuesIndices:
    x, axis = input._array, one_dim(dim, input._array.ndim)
    if not x.ndim:
        return ValuesIndices(clone(input), Tensor(np.zeros((), np.int64)))
    values = function.accumulate(x, axis) if x.size else x.copy()
    hits = x == values
    if isinstance(x, ArrayLike) or (x.size and np.isnan(values.take(-1, axis)).any()):  # nan stays to the end
        hits |= x != x
    indices = _last_true(hits, axis)
    result = Tensor(values)
    if records(input):
        record(_CHOSEN, result, (input,), (), x.shape, axis, indices, hits)
    return watched_pair(result, indices)


def _last_true(hits: Array, axis: int) -> Array:
    """Return for each element the index of the last true one in the dimension ``axis`` up to it; the first one is true."""
    if isinstance(hits, ArrayLike):
        positions = np.arange(hits.shape[axis]).reshape([-1 if each == axis else 1 for each in range(hits.ndim)])
        return as_array(np.maximum.accumulate(np.where(hits, positions, 0), axis))
    rows = np.moveaxis(hits, axis, -1)
    starts = np.flatnonzero(rows)
    runs = np.diff(starts, append=hits.size)
    found = np.repeat(starts % max(rows.shape[-1], 1), runs).reshape(rows.shape)
    return np.ascontiguousarray(np.moveaxis(found, -1, axis))


@operation(method=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return the differences ``input[i + 1] - input[i]`` in the dimension ``dim``, computed ``n`` times; ``!=`` for booleans.

    Args:
        input: any shape.
        n: how often differences are computed.
        dim: the dimension; negative ones count from the end.
        prepend: values to join before ``input`` first, in the dimension ``dim``.
        append: values to join after ``input`` first.

    Raises:
        ValueError: the tensor is 0-d, or ``n`` is negative.
    """
    if not input._array.ndim or n < 0:
        raise ValueError(f"diff() needs a dimension and n >= 0, and you gave shape {input.shape} and n={n}")
    axis = one_dim(dim, input._array.ndim)
    if not n:  # like PyTorch, which does not check the other arguments then
        return clone(input)
    parts = [as_tensor(part) for part in (prepend, input, append) if part is not None]
    result = joining.cat(parts, axis) if len(parts) > 1 else input
    minus = bitwise.logical_xor if result.dtype.kind == "b" else operators.minus
    before = (slice(None),) * axis
    for _ in range(min(n, result.shape[axis])):
        after = indexing.getitem(result, (*before, slice(1, None)))
        result = minus(after, indexing.getitem(result, (*before, slice(0, max(result.shape[axis] - 1, 0)))))
    return result


def _sum_from_end(x: Array, dim: int) -> Array:
    return _cumulative_sum(x, dim, -1)


def _recorded_sum_from_end(x: Tensor, dim: int) -> Any:
    return backwards(TENSORS, cumsum(backwards(TENSORS, x, dim), dim), dim)


ARRAYS.__dict__.update(
    {
        "cumprod": _cumulative_product,
        "cumsum": _cumulative_sum,
        "cumsum_from_end": _sum_from_end,
        "recurrence": recurrence,
    }
)
TENSORS.__dict__.update(
    {
        "cumprod": cumprod,
        "cumsum": cumsum,
        "cumsum_from_end": _recorded_sum_from_end,
        "recurrence": recorded_recurrence,
    }
)
