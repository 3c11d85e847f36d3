"""Norms of vectors and matrices, and distances, condition numbers and ranks, which are computed from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...array_like import as_array
from ...dtypes import wide
from ...tensors import Tensor
from ...types import Array, Dims
from ..elementwise import operators
from ..elementwise.conversion import to
from ..index.masking import where
from ..reduce.extremes import amax, amin
from ..shape.transposing import movedim
from ..table.array_functions import add_reduce, maximum_reduce, minimum_reduce
from ..table.dims import all_dims, kept_shape, one_dim
from ..table.nodes import keep, keep_result, record, records
from ..table.operands import check_tensor
from ..table.operation import operation
from ..table.rows import Row
from .checks import matrices, square
from .eigenvalues import eigvalsh, svdvals
from .solving import inv, tolerance


def _rule(xp: Any, g: Any, x: Any, *arguments: Any) -> Any:
    return xp.cast(_slope(xp, g, x, *arguments), x.dtype)


def _slope(xp: Any, g: Any, x: Any, out: Any, order: float, dims: Any, kept: Any) -> Any:
    g, length = xp.reshape(g, kept), xp.reshape(out, kept)
    if order == 1:
        return xp.sign(x) * g
    if order == 2:
        return x * xp.where(length == 0, 0.0, g / xp.where(length == 0, 1.0, length))
    size = xp.abs(x)
    if order in (np.inf, -np.inf):
        chosen = xp.cast((size == length) | ((size != size) & (length != length)), length.dtype)
        return xp.sign(x) * (g * chosen / xp.sum_dims(chosen, dims, True))
    # Where x is 0 the gradient is 0, as in PyTorch, also if the slope is infinite there.
    here = xp.where(size == 0, 1.0, size)
    scale = xp.where(length == 0, 0.0, g * xp.where(length == 0, 1.0, length) ** (1 - order))
    return xp.where(size == 0, 0.0, xp.sign(x) * here ** (order - 1)) * scale


_NORM = Row("linalg_vector_norm", _rule, holomorphic=False)


@operation(function="linalg.vector_norm")
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the norm of vectors, ``(|x| ** ord).sum() ** (1 / ord)``, real.

    Args:
        x: any shape, floating-point or complex.
        ord: order of the norm; ``inf`` and ``-inf`` give the largest and smallest absolute value, 0 the number of elements
            that are not 0.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert to before.
        out: where the result is written.

    Raises:
        IndexError: there is no such dimension.
        TypeError: the dtype is not floating-point or complex.
        ValueError: there are no elements, and ``ord`` is negative or ``inf``.
    """
    source = x if dtype is None else to(x, dtype)
    if source.dtype.kind in "biu":
        raise TypeError(f"linalg.vector_norm() computes in floating point, not {source.dtype}; pass dtype=")
    values, dims = source._array, all_dims(dim, x.ndim)
    if not math.prod([values.shape[axis] for axis in dims]) and (ord < 0 or ord == np.inf):
        raise ValueError(f"linalg.vector_norm() of order {ord} needs elements, and the shape is {values.shape}")
    result = Tensor(_length(values, float(ord), dims, keepdim))
    if ord != 0 and records(source):
        saved = (keep(source), keep_result(result))
        record(_NORM, result, (source,), saved, float(ord), dims, kept_shape(values.shape, dims))
    return result


def _length(x: Array, order: float, dims: tuple[int, ...], keepdim: bool) -> Array:
    if order == 2 and x.dtype.kind == "f" and x.itemsize > 2 and len(dims) == x.ndim and not keepdim:
        flat = x.reshape(-1)
        return as_array(np.sqrt(flat.dot(flat)))  # one pass over the memory
    size = np.abs(x)
    kind = size.dtype
    size = wide(size)
    if order == np.inf:
        result = maximum_reduce(size, dims, keepdims=keepdim)
    elif order == -np.inf:
        result = minimum_reduce(size, dims, keepdims=keepdim)
    elif order == 0:
        result = add_reduce(size != 0, dims, keepdims=keepdim)
    elif order == 1:
        result = add_reduce(size, dims, keepdims=keepdim)
    elif order == 2:
        result = np.sqrt(add_reduce(size * size, dims, keepdims=keepdim))
    else:
        result = add_reduce(size**order, dims, keepdims=keepdim) ** (1 / order)
    return as_array(result).astype(kind, copy=False)


@operation(function="linalg.matrix_norm")
def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the norm of matrices, real.

    Args:
        A: at least 2-d, floating-point or complex.
        ord: "fro" for the root of the sum of squares, "nuc" for the sum of singular values, 2 and -2 for the largest and
            smallest singular value, 1 and -1 for the largest and smallest sum of absolute values of a column, ``inf`` and
            ``-inf`` of a row.
        dim: the dimensions of rows and columns.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert to before.
        out: where the result is written.

    Raises:
        IndexError: there is no such dimension.
        TypeError: the dtype is not floating-point or complex.
        ValueError: another ``ord``, or not two different dimensions.
    """
    source = A if dtype is None else to(A, dtype)
    if source.ndim < 2:
        raise ValueError(f"linalg.matrix_norm() takes matrices, of at least 2 dimensions, and you gave shape {A.shape}")
    if len(dim) != 2 or len({one_dim(each, source.ndim) for each in dim}) != 2:
        raise ValueError(f"linalg.matrix_norm() needs two different dimensions, and you gave {dim}")
    row, column = (one_dim(each, source.ndim) for each in dim)
    if ord == "fro":
        result = vector_norm(source, 2, (row, column), keepdim)
    elif ord in ("nuc", 2, -2):
        s = svdvals(movedim(source, (row, column), (-2, -1)))
        result = s.sum(-1) if ord == "nuc" else _largest(s, -1) if ord == 2 else amin(s, -1)
        result = _kept(result, (row, column)) if keepdim else result
    elif ord in (1, -1, np.inf, -np.inf):
        summed, chosen = (row, column) if abs(float(ord)) == 1 else (column, row)
        sums = vector_norm(source, 1, summed, True)
        result = (_largest if float(ord) > 0 else amin)(sums, chosen, True)
        result = result if keepdim else result.squeeze((row, column))
    else:
        raise ValueError(
            f'linalg.matrix_norm() takes ord "fro", "nuc", 1, -1, 2, -2, inf and -inf, and you gave {ord!r}'
        )
    return result


def _largest(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    # The norm of a matrix without elements is 0.
    return amax(x, dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim)


def _kept(x: Tensor, dims: tuple[int, int]) -> Tensor:
    for dim in sorted(dims):
        x = x.unsqueeze(dim)
    return x


@operation(function="linalg.norm")
def linalg_norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``linalg.vector_norm`` or ``linalg.matrix_norm``.

    With ``ord``, it is ``matrix_norm`` if ``dim`` names two dimensions or, without ``dim``, ``A`` is 2-d. Errors: those of
    the two.

    Args:
        A: any shape, floating-point or complex.
        ord: order of the norm; if ``None``, that of vectors of order 2.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert to before.
        out: where the result is written.
    """
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None and A.ndim not in (1, 2) and not isinstance(ord, str):
        raise ValueError(f"linalg.norm() with ord and without dim takes vectors and matrices, not shape {A.shape}")
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if isinstance(ord, str) or (A.ndim == 2 if dims is None else len(dims) == 2):
        return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)  # type: ignore[arg-type]
    return vector_norm(A, ord, dims, keepdim, dtype=dtype)


@operation(method=True)
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
) -> Tensor:
    """Return the norm of vectors, ``linalg.vector_norm``, or for "nuc" that of matrices.

    Args:
        input: any shape, floating-point or complex.
        p: order of the norm; ``inf`` and ``-inf`` give the largest and smallest absolute value, 0 the number of elements
            that are not 0. "fro" is 2; "nuc" is the sum of the singular values of matrices.
        dim: the dimensions to reduce; all if ``None``, for "nuc" the last two.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.
        dtype: dtype to convert to before.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: another name for ``p``, or no elements for a negative ``p`` or ``inf``.
    """
    if p == "nuc":
        rows, columns = (-2, -1) if dim is None or isinstance(dim, int) else dim
        return matrix_norm(input, "nuc", (rows, columns), keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f'norm() takes a number, "fro" or "nuc" for p, and you gave {p!r}')
    order = 2.0 if p is None or isinstance(p, str) else float(p)
    return vector_norm(input, order, dim, keepdim, dtype=dtype)


@operation(method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the norm of order ``p`` of all of ``input - other``, 0-d.

    Args:
        input: any shape, floating-point or complex.
        other: broadcast with ``input``.
        p: order of the norm.

    Raises:
        TypeError: ``input`` or ``other`` is not a tensor.
    """
    check_tensor("dist", "input", input)
    check_tensor("dist", "other", other)
    return norm(operators.sub(input, other), p)


@operation(method=True, in_place=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return ``input`` with each slice of ``dim`` whose norm is above ``maxnorm`` scaled down to it.

    Args:
        input: at least 2-d, floating-point or complex.
        p: order of the norm.
        dim: the dimension of the slices; negative ones count from the end.
        maxnorm: the largest norm.

    Raises:
        IndexError: there is no such dimension.
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions.
    """
    if input.ndim < 2:
        raise ValueError(f"renorm() needs at least 2 dimensions, and you gave shape {input.shape}")
    axis = one_dim(dim, input.ndim)
    lengths = vector_norm(input, p, tuple(each for each in range(input.ndim) if each != axis), True)
    return input * where(lengths > maxnorm, maxnorm / (lengths + 1e-7), 1.0)


@operation(function="linalg.cond")
def cond(A: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return the condition numbers ``(...)`` of matrices, ``matrix_norm(A, p) * matrix_norm(inv(A), p)``.

    Args:
        A: matrices ``(..., m, n)``.
        p: order of the norm, see ``linalg.matrix_norm``; 2 if ``None``.
        out: where the result is written.

    Raises:
        LinAlgError: a matrix is singular, for another norm than 2 and -2.
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square, for another norm than 2 and -2.
    """
    if p is None or p in (2, -2):
        s = svdvals(A)
        if not s.shape[-1]:
            return s.sum(-1)  # 0, as in PyTorch
        high, low = amax(s, -1), amin(s, -1)
        result = low / high if p == -2 else high / low
    else:
        square("linalg.cond", A)
        result = matrix_norm(A, p) * matrix_norm(inv(A), p)
    return result


@operation(function="linalg.matrix_rank")
def matrix_rank(
    A: Tensor,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the ranks ``(...)`` of matrices, int64: the number of singular values above ``max(atol, rtol * largest)``.

    Args:
        A: matrices ``(..., m, n)``.
        atol: absolute tolerance; 0 if ``None``.
        rtol: relative tolerance; if ``None``, ``max(m, n)`` times the machine epsilon, or 0 if ``atol`` is given.
        hermitian: whether the matrices are Hermitian; then the absolute eigenvalues are used.
        out: where the result is written.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions.
    """
    x = matrices("linalg.matrix_rank", A)
    if hermitian:
        s = -np.sort(-np.abs(eigvalsh(A.detach())._array), -1)
    else:
        s = np.linalg.svd(x, compute_uv=False) if x.size else np.zeros((*x.shape[:-2], 0), x.real.dtype)
    return Tensor(np.asarray((s > tolerance(x, s, atol, rtol)[..., None]).sum(-1)))
