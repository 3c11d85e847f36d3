"""Products, powers and distances of vectors, and inverses and linear systems of tensors, ``tensorinv`` and ``tensorsolve``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import result_type, wide_type
from ...tensors import Tensor
from ..elementwise.complex_numbers import conj
from ..elementwise.conversion import to
from ..index.elements import FULL, GET
from ..shape.flipping import flip
from ..shape.joining import stack
from ..shape.reshaping import reshape
from ..table.dims import one_dim
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import Row
from .matrix_products import factors
from .norms import vector_norm
from .solving import inv, solve


@operation(method=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return the cross products of vectors of length 3, of the shape of both, broadcast.

    Args:
        input: at least 1-d.
        other: broadcast with ``input``, of the same number of dimensions.
        dim: the dimension of the vectors; the first of length 3 if ``None``.
        out: where the result is written.

    Raises:
        IndexError: there is no such dimension.
        ValueError: no dimension, or not ``dim``, has length 3 in both, or the numbers of dimensions differ.
    """
    if dim is None:
        threes = [axis for axis, length in enumerate(input.shape) if length == 3]
        if not threes:
            raise ValueError(f"cross() needs a dimension of length 3, and you gave shape {input.shape}")
        dim = threes[0]
    return _cross("cross", input, other, dim)


@operation(function="linalg.cross")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the cross products of vectors of length 3, of the shape of both, broadcast. Errors: those of ``cross``.

    Args:
        input: at least 1-d.
        other: broadcast with ``input``, of the same number of dimensions.
        dim: the dimension of the vectors.
        out: where the result is written.
    """
    return _cross("linalg.cross", input, other, dim)


def _cross(name: str, a: Tensor, b: Tensor, dim: int) -> Tensor:
    if a.ndim != b.ndim:
        raise ValueError(f"{name}() needs as many dimensions in both, and you gave shapes {a.shape} and {b.shape}")
    axis = one_dim(dim, a.ndim)
    if not a.ndim or a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"{name}() needs length 3 in dim {dim}, and you gave shapes {a.shape} and {b.shape}")
    dtype, precise = result_type(a, b), wide_type(result_type(a, b))
    a, b = to(a, precise), to(b, precise)  # the products cancel each other
    ahead, behind = ((FULL,) * axis + (np.array(order),) for order in ((1, 2, 0), (2, 0, 1)))
    return to(GET(a, ahead) * GET(b, behind) - GET(a, behind) * GET(b, ahead), dtype)


@operation(function="linalg.vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the inner products of vectors, ``(conj(x) * y).sum(dim)``.

    Args:
        x: any shape.
        y: broadcast with ``x``.
        dim: the dimension of the vectors.
        out: where the result is written.

    Raises:
        ValueError: the shapes do not fit.
    """
    return (conj(x) * y).sum(dim)


@operation(function="linalg.vander")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers 0 to ``N - 1`` of each element of ``x`` ``(..., n)``: ``(..., n, N)``; ``N`` is ``n`` if ``None``.

    Raises:
        ValueError: a 0-d tensor, or ``N`` below 0.
    """
    if N is not None and not x.ndim:
        x = x.reshape(1)
    count = N if N is not None or not x.ndim else x.shape[-1]
    if count is None or count < 0:
        raise ValueError(f"linalg.vander() takes vectors and N from 0, and you gave shape {x.shape} and {N}")
    if x.dtype.kind in "biu":
        x = to(x, np.int64)
    columns = [Tensor(np.ones(x.shape, x.dtype))]
    for _ in range(1, count):
        columns.append(columns[-1] * x)
    return stack(columns[:count], -1) if count else Tensor(np.zeros((*x.shape, 0), x.dtype))


@operation(function=True)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers 0 to ``N - 1`` of the elements of a vector, ``(n, N)``.

    Args:
        x: a vector ``(n,)``.
        N: number of columns; ``n`` if ``None``.
        increasing: whether the power 0 is the first column; else the last.

    Raises:
        ValueError: not a vector, or ``N`` below 0.
    """
    if x.ndim != 1:
        raise ValueError(f"vander() takes a vector, and you gave shape {x.shape}")
    powers = linalg_vander(x, N=N)
    return powers if increasing else flip(powers, -1)


def _euclid_x1(xp: Any, g: Any, x1: Any, x2: Any, out: Any, shape: Any, other: Any) -> Any:
    share = g * xp.where(out == 0, 0, 1 / xp.where(out == 0, 1, out))
    return xp.fit(x1 * xp.sum_dims(share, (-1,), True) - xp.matmul(share, x2), shape, g.dtype)


def _euclid_x2(xp: Any, g: Any, x1: Any, x2: Any, out: Any, other: Any, shape: Any) -> Any:
    share = (g * xp.where(out == 0, 0, 1 / xp.where(out == 0, 1, out))).mT
    return xp.fit(x2 * xp.sum_dims(share, (-1,), True) - xp.matmul(share, x1), shape, g.dtype)


def _lengths_rule(xp: Any, g: Any, apart: Any, out: Any, p: float) -> Any:
    g, out = xp.reshape(g, (*g.shape, 1)), xp.reshape(out, (*out.shape, 1))
    sign = xp.where(apart == apart, xp.sign(apart), np.nan)
    if p == 0:
        return xp.zeros_like(apart)
    if p == 1:
        return g * sign
    if p == np.inf:  # of several largest, each gets the whole gradient
        return xp.where(out == out, xp.where(xp.abs(apart) == out, g * sign, 0.0), np.nan)
    still = apart == 0 if p < 1 else (apart == 0) & (out == out)
    share = xp.where(still, 1.0, xp.abs(apart) / xp.where(still, 1.0, out))
    return xp.where(still, 0.0, g * sign * share ** (p - 1))


_LENGTHS = Row("cdist", _lengths_rule)
_EUCLID = Row("cdist", _euclid_x1, _euclid_x2)
_MM_FROM = 25
_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@operation(function=True)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Tensor:
    """Return the distances of each row of ``x1`` from each row of ``x2``, ``(..., n, k)``.

    Args:
        x1: rows ``(..., n, m)``.
        x2: rows ``(..., k, m)``, of the same dtype.
        p: order of the norm; 0 gives the number of elements that differ.
        compute_mode: "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist" or "donot_use_mm_for_euclid_dist":
            for ``p`` 2, whether to compute with a matrix product, which is faster and less exact for rows that are near;
            "if necessary" is for more than 25 rows.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes do not fit, ``p`` is negative, or another ``compute_mode``.
    """
    x, y = factors("cdist", x1, x2)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ValueError(f"cdist() takes rows of one length, and you gave shapes {x.shape} and {y.shape}")
    if p < 0 or compute_mode not in _MODES:
        raise ValueError(
            f"cdist() takes p from 0 and compute_mode {', '.join(_MODES)}; you gave {p} and {compute_mode!r}"
        )
    if wide_type(x.dtype) != x.dtype:  # squares of near rows cancel each other
        apart = cdist(to(x1, wide_type(x.dtype)), to(x2, wide_type(x.dtype)), p, compute_mode)
        return to(apart, x.dtype)
    if p != 2:
        return _lengths(x1.unsqueeze(-2) - x2.unsqueeze(-3), float(p))
    by_product = compute_mode == _MODES[1] or (compute_mode == _MODES[0] and max(x.shape[-2], y.shape[-2]) > _MM_FROM)
    result = Tensor(_distances_by_product(x, y) if by_product else _distances(x, y))
    if records(x1, x2):
        record(_EUCLID, result, (x1, x2), (keep(x1), keep(x2), keep_result(result)), x.shape, y.shape)
    return result


def _lengths(apart: Tensor, p: float) -> Tensor:
    """Return the ``p``-norms along the last dimension: as ``vector_norm``, with the gradients that PyTorch gives distances."""
    plain = Tensor(apart._array)
    # Counted so that nan gives nan.
    result = plain.abs().ceil().clamp(max=1).sum(-1) if p == 0 else vector_norm(plain, p, -1)
    return record(_LENGTHS, result, (apart,), (keep(apart), keep_result(result)), p) if records(apart) else result


def _distances(x: Any, y: Any) -> Any:
    apart = x[..., :, None, :] - y[..., None, :, :]
    return np.sqrt((apart * apart).sum(-1))


def _distances_by_product(x: Any, y: Any) -> Any:
    squares = (x * x).sum(-1)[..., :, None] + (y * y).sum(-1)[..., None, :] - 2 * np.matmul(x, y.mT)
    return np.sqrt(np.maximum(squares, 0))


@operation(function=True)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances of each two rows i < j of a matrix ``(n, m)``, in the ``p``-norm: ``(n * (n - 1) / 2,)``.

    Raises:
        ValueError: not a matrix, or ``p`` is negative.
    """
    if input.ndim != 2 or p < 0:
        raise ValueError(f"pdist() takes a matrix and p from 0, and you gave shape {input.shape} and {p}")
    first, second = np.triu_indices(len(input), 1)
    return _lengths(GET(input, (first,)) - GET(input, (second,)), float(p))


@operation(function="linalg.tensorinv")
def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse for ``tensordot``, of shape ``A.shape[ind:] + A.shape[:ind]``.

    Args:
        A: a tensor with ``prod(A.shape[:ind]) == prod(A.shape[ind:])``.
        ind: number of the dimensions that count as rows.
        out: where the result is written.

    Raises:
        LinAlgError: ``A`` is singular.
        ValueError: ``ind`` is not positive, or the lengths differ.
    """
    rows, columns = A.shape[:ind], A.shape[ind:]
    if ind <= 0 or math.prod(rows) != math.prod(columns):
        raise ValueError(f"linalg.tensorinv() needs prod(shape[:ind]) to be prod(shape[ind:]): {A.shape}, ind {ind}")
    return reshape(inv(reshape(A, (math.prod(rows), math.prod(rows)))), columns + rows)


@operation(function="linalg.tensorsolve")
def tensorsolve(
    A: Tensor,
    B: Tensor,
    dims: Sequence[int] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``X`` with ``tensordot(A, X, X.ndim) = B``, of shape ``A.shape[B.ndim:]``.

    Args:
        A: shape ``B.shape`` and that of ``X``, which have equally many elements.
        B: any shape, of the dtype of ``A``.
        dims: dimensions of ``A`` to move to the end; none if ``None``.
        out: where the result is written.

    Raises:
        LinAlgError: ``A`` is singular.
        ValueError: the shapes do not fit.
    """
    given = A if dims is None else A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    rest = given.shape[B.ndim :]
    if math.prod(rest) != B.numel() or math.prod(given.shape[: B.ndim]) != B.numel():
        raise ValueError(f"linalg.tensorsolve() cannot solve a system of shape {given.shape} for {B.shape}")
    return reshape(solve(reshape(given, (B.numel(), B.numel())), reshape(B, -1)), rest)
