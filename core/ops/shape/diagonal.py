"""Diagonals and triangles of matrices: ``diagonal``, ``diag_embed``, ``tril``, ``triu``, ``trace``."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...array_like import as_array
from ...tensors import Tensor
from ...types import Array
from ..elementwise.conversion import to
from ..table.array_functions import chosen
from ..table.dims import one_dim
from ..table.linear_map import LinearMap
from ..table.operation import operation
from ..table.rows import ARRAYS, TENSORS


def _diagonal(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    out: Array = x.diagonal(offset, dim1, dim2)
    if x.flags.writeable:
        out.flags.writeable = True
    return out


def _on_diagonal(g: Array, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    out = np.zeros(shape, g.dtype)
    _diagonal(out, offset, dim1, dim2)[...] = g
    return out


def _diagonal_matrices(x: Array) -> Array:
    return _on_diagonal(x, (*x.shape, x.shape[-1]), 0, x.ndim - 1, x.ndim)


_DIAGONAL = LinearMap("diagonal", _diagonal, _on_diagonal, view=True)


@lru_cache(maxsize=16)
def _below(rows: int, columns: int, k: int) -> Array:
    return np.tri(rows, columns, k, dtype=bool)


def _mask(x: Array, k: int) -> Array:
    """Return a mask of the elements on or below diagonal ``k``; small masks are cached, because attention needs them again."""
    rows, columns = x.shape[-2:]
    return (_below if rows * columns <= 1 << 20 else _below.__wrapped__)(rows, columns, k)


def lower(x: Array, k: int) -> Array:
    """Return the lower triangles ``(..., m, n)``, up to diagonal ``k``, and zeros elsewhere."""
    return as_array(chosen(_mask(x, k), x))


def upper(x: Array, k: int) -> Array:
    """Return the upper triangles ``(..., m, n)``, from diagonal ``k``, and zeros elsewhere."""
    return as_array(chosen(~_mask(x, k - 1), x))


_TRIL = LinearMap("tril", lower, lambda g, shape, k: lower(g, k))
_TRIU = LinearMap("triu", upper, lambda g, shape, k: upper(g, k))


@operation(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals of two dimensions, as a new last dimension.

    Args:
        input: at least 2-d, any dtype.
        offset: the diagonal: 0 the main one, 1 the one above, -1 the one below.
        dim1: the dimension of the rows.
        dim2: the dimension of the columns.

    Raises:
        IndexError: there is no such dimension.
        ValueError: ``dim1`` is ``dim2``.
    """
    return _DIAGONAL.view(input, offset, *_two_dims("diagonal", input.ndim, dim1, dim2))


@operation(function="linalg.diagonal")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of the diagonals of two dimensions, as a new last dimension. Errors: those of ``diagonal``.

    Args:
        A: at least 2-d, any dtype.
        offset: the diagonal: 0 the main one, 1 the one above, -1 the one below.
        dim1: the dimension of the rows.
        dim2: the dimension of the columns.
    """
    return diagonal(A, offset, dim1, dim2)


@operation(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return square matrices of zeros with the last dimension of ``input`` on a diagonal; by default ``(..., n, n)``.

    Args:
        input: ``(..., n)``, any dtype.
        offset: the diagonal: 0 the main one, 1 the one above, -1 the one below.
        dim1: the dimension of the rows in the result.
        dim2: the dimension of the columns in the result.

    Raises:
        IndexError: there is no such dimension.
        ValueError: ``dim1`` is ``dim2``, or ``input`` is 0-d.
    """
    if not input.ndim:
        raise ValueError("diag_embed() needs a tensor with dimensions, and this one is 0-d")
    first, second = _two_dims("diag_embed", input.ndim + 1, dim1, dim2)
    side = input.shape[-1] + abs(offset)
    shape = list(input.shape[:-1])
    for axis in sorted((first, second)):
        shape.insert(axis, side)
    return _DIAGONAL.transposed(input, tuple(shape), offset, first, second)


@operation(method=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy of ``input`` with ``src`` on the diagonals of two dimensions.

    Args:
        input: at least 2-d, any dtype.
        src: the diagonals, of the shape of ``diagonal(input, offset, dim1, dim2)``.
        offset: the diagonal: 0 the main one, 1 the one above, -1 the one below.
        dim1: the dimension of the rows.
        dim2: the dimension of the columns.

    Raises:
        IndexError: there is no such dimension.
        ValueError: ``src`` has another shape, or ``dim1`` is ``dim2``.
    """
    first, second = _two_dims("diagonal_scatter", input.ndim, dim1, dim2)
    shape = _diagonal(input._array, offset, first, second).shape
    if src.shape != shape:
        raise ValueError(f"diagonal_scatter() needs a src of shape {shape}, and you gave {src.shape}")
    src = to(src, input.dtype)
    off = _on_diagonal(np.ones(shape, bool), input.shape, offset, first, second)
    return _DIAGONAL.transposed(src, input.shape, offset, first, second) + input.masked_fill(Tensor(off), 0)


@operation(method=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a square matrix with a vector on diagonal number ``diagonal``; for a matrix, a copy of that diagonal.

    Raises:
        ValueError: ``input`` is neither 1-d nor 2-d.
    """
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise ValueError(f"diag() takes a vector or a matrix, and the shape is {input.shape}; use diagonal()")
    return _DIAGONAL.view(input, diagonal, 0, 1).clone()


@operation(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a square matrix of zeros with the flattened tensor on diagonal number ``offset``."""
    return diag_embed(input.reshape(-1), offset)


@operation(method=True)
def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal of a matrix, 0-d.

    Raises:
        ValueError: ``input`` is not 2-d.
    """
    if input.ndim != 2:
        raise ValueError(f"trace() takes a matrix, and the shape is {input.shape}")
    return _DIAGONAL.view(input, 0, 0, 1).sum()


@operation(method=True, in_place="overwrite")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the lower triangles of matrices ``(..., m, n)``, up to diagonal number ``diagonal``, and zeros elsewhere.

    Raises:
        ValueError: fewer than two dimensions.
    """
    return _TRIL(_matrices("tril", input), diagonal)


@operation(method=True, in_place="overwrite")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the upper triangles of matrices ``(..., m, n)``, from diagonal number ``diagonal``, and zeros elsewhere.

    Raises:
        ValueError: fewer than two dimensions.
    """
    return _TRIU(_matrices("triu", input), diagonal)


def _matrices(name: str, input: Tensor) -> Tensor:
    if input.ndim < 2:
        raise ValueError(f"{name}() needs at least 2 dimensions, and the shape is {input.shape}")
    return input


def _two_dims(name: str, ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    first, second = one_dim(dim1, ndim), one_dim(dim2, ndim)
    if first == second or ndim < 2:
        raise ValueError(f"{name}() needs two different dimensions, and you gave {dim1} and {dim2} of {ndim}")
    return first, second


ARRAYS.tril, TENSORS.tril = lower, _TRIL
ARRAYS.triu, TENSORS.triu = upper, _TRIU
ARRAYS.diag_embed, TENSORS.diag_embed = _diagonal_matrices, diag_embed
