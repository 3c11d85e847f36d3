"""``ARRAYS``: the functions that gradient rules call when they run on arrays. ``TENSORS`` has the same names.

Reductions call NumPy's ufuncs: the methods of arrays cost one more Python call, and their warnings of ``inf - inf`` name
NumPy's code instead of ours.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...array_like import ArrayLike, as_array
from ...dtypes import complex_type, converted, wide, wide_type
from ...types import Array, DType
from ..index.array_elements import LinearIndex, add_at, gather_index, read_at, without
from ..special.error_arrays import erf
from ..special.gamma_arrays import digamma, polygamma
from .rows import ARRAYS

_ndarray = np.ndarray
_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def chosen(mask: Any, x: Any, out: Array | None = None) -> Any:
    """Return ``x`` where ``mask`` is true, and 0 elsewhere, broadcast.

    It multiplies the bits of real numbers by one or zero, which is ten times as fast as ``np.where``.

    Args:
        mask: booleans.
        x: an array or number.
        out: array that the result is written to.
    """
    x = x if type(x) is _ndarray else as_array(x)
    if x.dtype.kind not in "fV" or x.itemsize not in _BITS:
        return np.where(mask, x, x.dtype.type(0))
    bits = _BITS[x.itemsize]
    into = None if out is None else out.view(bits)
    product = np.multiply(x.view(bits), mask, out=into)
    return (product if type(product) is _ndarray else as_array(product)).view(x.dtype)


def where(mask: Any, x: Any, y: Any) -> Any:
    """Return ``x`` where ``mask`` is true, and ``y`` elsewhere, broadcast; several times as fast as ``np.where``.

    Args:
        mask: an array of booleans.
        x, y: arrays or numbers.
    """
    dtype = np.result_type(x, y)
    if np.size(mask) < FEW or dtype.kind not in "fiu" or dtype.itemsize not in _BITS:
        return np.where(mask, x, y)
    first, second = (_bits_where(choice, each, dtype) for choice, each in ((mask, x), (~mask, y)))
    return np.bitwise_or(first, second).view(dtype)


def _bits_where(mask: Array, x: Any, dtype: DType) -> Array:
    x = x.astype(dtype, copy=False) if isinstance(x, ArrayLike) else np.asarray(x, dtype)
    return as_array(np.multiply(x.view(_BITS[dtype.itemsize]), mask))


_add: Any = np.add.reduce
multiply_reduce: Any = np.multiply.reduce
maximum_reduce: Any = np.maximum.reduce
minimum_reduce: Any = np.minimum.reduce

FEW = 1024  # elements, below which one slow function costs less than several quick ones
SHORT = 128  # row
_MANY, _MOST = 1 << 15, 1 << 20  # elements of whole_sum(); memory takes its time beyond that
_SHORT_ROW = 32  # of row_maxima()
_ROWS = 1 << 14  # of column_sums(), for which there are ones
BLOCK = 512  # with 128, sums over a few hundred rows took twice as long


def add_reduce(x: Any, dims: Any, keepdims: bool = False) -> Any:
    """Return the sum over ``dims``; numbers of 16 bits are added up in float32.

    In 16 bits a sum would stop growing: 256 + 1 is 256 in bfloat16.

    Args:
        x: any shape.
        dims: a dimension, or a tuple of them; all if ``None``.
        keepdims: whether the dimensions that are reduced stay, with length 1.

    Returns:
        Of the dtype of ``x``; int64 for booleans.
    """
    dtype = x.dtype
    if dtype.itemsize == 2 and dtype.kind in "fV":
        return _add(x, dims, np.float32, keepdims=keepdims).astype(dtype)
    return _add(x, dims, keepdims=keepdims)


def pairwise_sum(x: Any, dims: Any, keepdims: bool = False) -> Any:
    """Return the sum over ``dims``; a long dimension is summed in blocks, so that rounding errors do not grow with its length.

    NumPy does so for the last dimension only; for others it adds row after row to one sum.

    Args:
        x: any shape.
        dims: a tuple of dimensions, from 0; all if ``None``.
        keepdims: whether the dimensions that are reduced stay, with length 1.
    """
    if dims is None or not x.ndim:
        return add_reduce(x, None, keepdims=keepdims)
    axis = max(dims, key=lambda dim: x.shape[dim], default=x.ndim - 1)
    if axis >= x.ndim - 1 or x.shape[axis] < 2 * BLOCK or not x.flags.c_contiguous:
        return add_reduce(x, dims, keepdims=keepdims)
    before, length, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    whole = length - length % BLOCK
    rows = np.moveaxis(x, axis, 0)
    blocks = np.moveaxis(rows[:whole], 0, axis).reshape(*before, -1, BLOCK, *after)
    parts = add_reduce(blocks, axis + 1)
    if whole < length:
        rest = np.expand_dims(add_reduce(rows[whole:], 0), axis)
        parts = np.concatenate([parts, rest], axis)
    return pairwise_sum(parts, dims, keepdims)


def whole_sum(x: Any) -> Any:
    """Return the sum of all elements, in the dtype of ``x``.

    Of many float32 numbers a product with ones takes half the time of NumPy's sum, and adds up as few one after the other.

    Args:
        x: any shape, not of 16 bits or less.
    """
    if not _MANY <= x.size <= _MOST or x.size % SHORT or x.dtype != np.float32 or not x.flags.c_contiguous:
        return _add(x, None)
    return _add(np.matmul(x.reshape(-1, SHORT), _filled(SHORT, x.dtype, 1.0)), None)


def row_sums(x: Array, factor: float = 1.0) -> Array:
    """Return the sums over the last dimension, which stays with length 1, times ``factor``.

    A product with a vector takes a third of the time of a sum over short rows, and is as precise.

    Args:
        x: any shape, float32 or float64 for this.
        factor: of each sum; one over the length for means.
    """
    length = x.shape[-1]
    if length > 2 * BLOCK or x.dtype.kind != "f" or x.itemsize < 4 or not x.size:
        sums = add_reduce(x, -1, keepdims=True)
        return as_array(sums if factor == 1 else sums * factor)
    rows = x.reshape(-1, length) if x.flags.c_contiguous else x  # one product instead of many
    sums = np.matmul(rows, _filled(length, x.dtype, factor))
    return (sums if type(sums) is _ndarray else as_array(sums)).reshape(*x.shape[:-1], 1)


def row_maxima(x: Array) -> Array:
    """Return the largest elements over the last dimension, which stays with length 1; -inf if that has no elements.

    Short rows are copied to columns first, of which NumPy compares many at once: for rows of 10 in an eighth of the time.

    Args:
        x: any shape, not complex.
    """
    length = x.shape[-1]
    if not 0 < length <= _SHORT_ROW or x.size < FEW // 2 or x.dtype.itemsize < 4 or not x.flags.c_contiguous:
        return as_array(maximum_reduce(x, -1, keepdims=True, initial=-np.inf))
    columns = x.reshape(-1, length).T.copy()
    return as_array(maximum_reduce(columns, 0)).reshape(*x.shape[:-1], 1)


def column_sums(x: Array) -> Array:
    """Return the sums over all dimensions but the last.

    A product with ones takes a third to a fifth of the time of a sum, which adds row after row and is less precise.

    Args:
        x: any shape, float32 or float64 in order for this.
    """
    length = math.prod(x.shape[:-1])
    if not 1 < length <= _ROWS or x.dtype.kind != "f" or x.itemsize < 4 or not (x.size and x.flags.c_contiguous):
        return sum_dims(x, tuple(range(x.ndim - 1)), False)
    sums = np.matmul(_filled(length, x.dtype, 1.0), x.reshape(length, x.shape[-1]))
    return sums if type(sums) is _ndarray else as_array(sums)


@lru_cache(maxsize=64)
def _filled(length: int, dtype: DType, value: float) -> Array:
    filled = np.full(length, value, dtype)
    filled.flags.writeable = False
    return filled


def row_dots(x: Array, y: Array) -> Array:
    """Return the dot products over the last dimension, which stays with length 1.

    Long rows take BLAS half the time of ``np.einsum``, and short ones twice the time.

    Args:
        x, y: one shape, of one dtype: float32 or float64.
    """
    if x.shape[-1] < SHORT:
        return as_array(np.einsum("...i,...i->...", x, y))[..., np.newaxis]
    return np.matmul(x[..., np.newaxis, :], y[..., np.newaxis])[..., 0]


def fit(grad: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return ``grad`` summed to ``shape`` and converted to ``dtype``: the adjoint of broadcasting and conversion."""
    if grad.shape != shape:
        grad = add_reduce(grad, stretched_dims(grad.shape, shape)).reshape(shape)
    return grad if grad.dtype == dtype else converted(grad, dtype)


def stretched_dims(shape: tuple[int, ...], former: tuple[int, ...]) -> tuple[int, ...]:
    """Return the dimensions of ``shape`` that broadcasting from the shape ``former`` added, or expanded from length 1."""
    extra = len(shape) - len(former)
    return (
        *range(extra),
        *[extra + dim for dim, length in enumerate(former) if length == 1 and shape[extra + dim] != 1],
    )


def scatter(shape: tuple[int, ...], index: Any, grad: Array) -> Array:
    """Return zeros of ``shape`` with ``grad`` added at ``index``, as many times as an element is named."""
    result = np.zeros(shape, grad.dtype, like=grad)
    if is_basic(index):
        result[index] = grad
        return result
    return add_at(result, index, grad)


def is_basic(index: Any) -> bool:
    """Return whether ``array[index]`` is a view: only integers, slices, ``None`` and ``...``."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None or part is Ellipsis or (isinstance(part, (slice, int, np.integer)) and not isinstance(part, bool))
        for part in parts
    )


def add_rows(shape: tuple[int, ...], rows: Array, grad: Array) -> Array:
    """Return zeros of ``shape`` with each row of ``grad`` added to the row that ``rows`` names."""
    return add_at(np.zeros(shape, grad.dtype), (rows,), grad)


def get(array: Array, index: Any) -> Array:
    """Return ``array[index]``."""
    return read_at(array, index) if type(index) is LinearIndex else as_array(array[index])


def reshape(array: Array, shape: tuple[int, ...]) -> Array:
    """Return ``array`` with the shape ``shape``."""
    result = array.reshape(shape)
    return result if type(result) is _ndarray else as_array(result)


def cast(array: Array, dtype: DType) -> Array:
    """Return ``array`` converted to ``dtype``."""
    return converted(as_array(array), dtype)


def sum_dims(array: Array, dims: Any, keepdim: bool) -> Array:
    """Return the sum over ``dims``, which stay with length 1 if ``keepdim``."""
    total = add_reduce(array, dims, keepdims=keepdim)
    return total if type(total) is _ndarray else as_array(total)


def broadcast_to(array: Any, shape: tuple[int, ...]) -> Array:
    """Return a view of ``array`` broadcast to ``shape``; an array of one element has a faster way than NumPy's."""
    if array.size == 1 and array.ndim <= len(shape) and not isinstance(array, ArrayLike):
        result: Array = np.ndarray(shape, array.dtype, np.asarray(array), strides=(0,) * len(shape))
        result.flags.writeable = False
        return result
    return np.broadcast_to(array, shape)


def sigmoid(array: Array) -> Any:
    """Return ``1 / (1 + exp(-array))``.

    By tanh it would be quicker, but 0 below -17 in float32, so that its logarithm would be infinite.
    """
    if wide_type(array.dtype) is not array.dtype:
        return sigmoid(wide(array)).astype(array.dtype)
    result = np.negative(array)
    if not array.ndim:
        return 1 / (1 + np.exp(result))
    np.exp(result, out=result)  # where it overflows, one over infinity is 0
    result += 1
    return np.divide(1, result, out=result)


def minimum(x: Array, bound: Any) -> Any:
    """Return the smaller of each element and ``bound``; for a number in a fourth of the time of ``np.minimum``."""
    return np.clip(x, -np.inf, bound) if type(bound) is float and x.dtype.kind == "f" else np.minimum(x, bound)


def conj(array: Array) -> Array:
    """Return the complex conjugate; a real array is returned itself, where NumPy would copy it."""
    return np.conj(array) if array.dtype.kind == "c" else array


def adjoint(array: Array) -> Array:
    """Return the conjugate transposes of matrices ``(..., m, n)``."""
    transposed: Array = array.mT
    # conj() written out: every matrix product calls this.
    return np.conj(transposed) if array.dtype.kind == "c" else transposed


def matmul(x: Array, y: Array) -> Any:
    """Return the matrix product; a batch of matrices times one matrix is computed as one product.

    Raises:
        ValueError: the shapes do not fit.
    """
    if x.dtype.itemsize == 2 and x.dtype.kind in "fV":
        # BLAS has no half-precision product, and float32 is more accurate.
        return matmul(wide(x), wide(y)).astype(x.dtype)
    if y.ndim <= 2 and x.ndim and y.ndim:
        if x.ndim <= 2:
            return x.dot(y)  # less overhead than np.matmul
        if y.ndim == 2:
            return x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).dot(y).reshape(*x.shape[:-1], y.shape[1])
    return np.matmul(x, y)


def signs(array: Array) -> Array:
    """Return -1, 0 or 1, and 0 for nan, as PyTorch does; for complex numbers ``z / |z|``, and 0 for 0."""
    if array.dtype.kind == "c":
        return as_array(np.sign(array))
    # NumPy's sign of nan is nan.
    return np.subtract(array > 0, array < 0, dtype=np.int8).astype(array.dtype)


def pairs(array: Array) -> Array:
    """Return the real and imaginary parts of complex numbers as a new last dimension."""
    return np.stack([array.real, array.imag], -1)


def to_complex(array: Array) -> Array:
    """Return real numbers converted to the complex dtype of the same precision."""
    return array.astype(complex_type(array.dtype))


def put_along(shape: tuple[int, ...], dim: int, index: Array, grad: Array) -> Array:
    """Return zeros of ``shape`` with ``grad`` added to the elements that ``gather(dim, index)`` reads."""
    where = gather_index(index, shape, dim) if index.ndim else LinearIndex(index)
    return add_at(np.zeros(shape, grad.dtype), where, grad)


ARRAYS.__dict__.update(
    {
        "abs": np.abs,
        "add_rows": add_rows,
        "adjoint": adjoint,
        "broadcast_to": broadcast_to,
        "cast": cast,
        "chosen": chosen,
        "column_sums": column_sums,
        "concatenate": np.concatenate,
        "conj": conj,
        "cos": np.cos,
        "cosh": np.cosh,
        "digamma": digamma,
        "erf": erf,
        "exp": np.exp,
        "fit": fit,
        "floor": np.floor,
        "get": get,
        "imag": np.imag,
        "isnan": np.isnan,
        "log": np.log,
        "masked": without,
        "matmul": matmul,
        "minimum": minimum,
        "pairs": pairs,
        "polygamma": polygamma,
        "put_along": put_along,
        "real": np.real,
        "reshape": reshape,
        "scatter": scatter,
        "sigmoid": sigmoid,
        "sign": signs,
        "sin": np.sin,
        "sqrt": np.sqrt,
        "sinh": np.sinh,
        "stack": np.stack,
        "sum_dims": sum_dims,
        "tanh": np.tanh,
        "to_complex": to_complex,
        "transpose": np.transpose,
        "trunc": np.trunc,
        "where": where,
        "zeros_like": np.zeros_like,
    }
)
