"""LDL factors of symmetric and Hermitian matrices, which may be indefinite, and linear systems solved with them.

J. R. Bunch and L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems" (Math. Comp. 31,
1977), in LAPACK's form (sytf2, lower triangle): D has blocks of 1 or 2 rows, chosen during the elimination.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ....base.errors import AutogradError
from ...tensors import Tensor
from ...types import Array
from ..table.nodes import records
from ..table.operation import operation
from ..table.outputs import record_outputs
from .checks import LinAlgError, matrices, square
from .matrix_products import matmul
from .solving import solved
from .triangular import size, triangle_solved

_ALPHA = (1 + math.sqrt(17)) / 8


class LDLFactor(NamedTuple):
    """Result of ``linalg.ldl_factor``."""

    LD: Tensor
    pivots: Tensor


class LDLFactorInfo(NamedTuple):
    """Result of ``linalg.ldl_factor_ex``."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _factor(a: Array, pivots: Array, hermitian: bool) -> int:
    """Factor one matrix in its lower triangle; return the number, counted from 1, of the first column of zeros, or 0."""
    n, k, info = len(a), 0, 0
    while k < n:
        step, other = _choose(a, k)
        if step == 0:
            info, step = info or k + 1, 1
        else:
            _swap(a, k, k + step - 1, other, hermitian)
            _eliminate(a, k, step, hermitian)
        pivots[k : k + step] = other + 1 if step == 1 else -(other + 1)
        k += step
    return info


def _choose(a: Array, k: int) -> tuple[int, int]:
    """Return the number of rows of the next block (0 if the column is zeros), and the row to swap with its last."""
    own, below = float(size(a[k, k])), size(a[k + 1 :, k])
    largest = float(below.max(initial=0))
    if max(own, largest) == 0:
        return 0, k
    if own >= _ALPHA * largest:
        return 1, k
    row = k + 1 + int(below.argmax())
    across = max(size(a[row, k:row]).max(initial=0), size(a[row + 1 :, row]).max(initial=0))
    if own >= _ALPHA * largest * (largest / across):
        return 1, k
    return (1, row) if size(a[row, row]) >= _ALPHA * across else (2, row)


def _swap(a: Array, k: int, one: int, other: int, hermitian: bool) -> None:
    if one == other:
        return
    a[other + 1 :, [one, other]] = a[other + 1 :, [other, one]]
    column, row = a[one + 1 : other, one].copy(), a[other, one + 1 : other].copy()
    a[one + 1 : other, one], a[other, one + 1 : other] = (row.conj(), column.conj()) if hermitian else (row, column)
    if hermitian:
        a[other, one] = a[other, one].conj()
    a[one, one], a[other, other] = a[other, other], a[one, one]
    if one > k:
        a[one, k], a[other, k] = a[other, k], a[one, k]


def _eliminate(a: Array, k: int, step: int, hermitian: bool) -> None:
    end = k + step
    block, x = _block(a[k:end, k:end], hermitian), a[end:, k:end].copy()
    factor = np.linalg.solve(block.T, x.T).T if step == 2 else x / block
    a[end:, end:] -= np.tril(factor @ (x.conj().T if hermitian else x.T))
    a[end:, k:end] = factor


def _block(lower: Array, hermitian: bool) -> Array:
    """Return the full symmetric or Hermitian block of a lower triangle."""
    below = np.tril(lower, -1)
    diagonal = np.diag(np.diag(lower).real if hermitian else np.diag(lower))
    return np.asarray(below + (below.conj().T if hermitian else below.T) + diagonal)


def _no_gradient(*args: Any) -> NoReturn:
    raise AutogradError(
        "linalg.ldl_factor() has no gradient; detach its input, or use linalg.lu_factor() or cholesky()"
    )


@operation(function="linalg.ldl_factor_ex")
def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> LDLFactorInfo:
    """Return ``ldl_factor`` and ``info``, without an error for a singular matrix.

    Args:
        A: symmetric or Hermitian matrices ``(..., n, n)``, of which only the lower triangle is read.
        hermitian: whether complex matrices are Hermitian.
        check_errors: whether to raise the error.
        out: where the results are written.

    Returns:
        ``LD`` and ``pivots`` of ``ldl_factor``, and ``info`` ``(...)``, int32: i where column i, counted from 1, is the
        first that the elimination left zero, else 0.

    Raises:
        LinAlgError: ``check_errors``, and a matrix is singular.
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    x = square("linalg.ldl_factor", A)
    packed = np.array(np.tril(x))
    pivots, info = np.zeros(x.shape[:-1], np.int32), np.zeros(x.shape[:-2], np.int32)
    for index in np.ndindex(x.shape[:-2]):
        info[index] = _factor(packed[index], pivots[index], hermitian and x.dtype.kind == "c")
        if check_errors and info[index]:
            where = f"matrix {index} of the batch" if index else "the matrix"
            raise LinAlgError(
                f"linalg.ldl_factor(): {where} is singular: column {info[index]} has no pivot other than 0"
            )
    result = LDLFactorInfo(Tensor(packed), Tensor(pivots), Tensor(info))
    if records(A):
        record_outputs("linalg_ldl_factor", _no_gradient, (result.LD,), A)
    return result


@operation(function="linalg.ldl_factor")
def ldl_factor(A: Tensor, *, hermitian: bool = False, out: tuple[Tensor, ...] | None = None) -> LDLFactor:
    """Return ``A = P @ L @ D @ L.mT @ P.mT`` in LAPACK's packed form, for ``ldl_solve``; there is no gradient.

    Args:
        A: symmetric or Hermitian matrices ``(..., n, n)``, of which only the lower triangle is read.
        hermitian: whether complex matrices are Hermitian, ``A = P @ L @ D @ L.mH @ P.mT``.
        out: where the results are written.

    Returns:
        ``LD`` ``(..., n, n)``, the blocks of D with L below them, and ``pivots`` ``(..., n)``, int32. A block of one row
        has a positive pivot: the row, counted from 1, that it was swapped with. A block of two rows has the same negative
        pivot twice: minus the row that its second row was swapped with.

    Raises:
        AutogradError: in the backward pass.
        LinAlgError: a matrix is singular.
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    result = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return LDLFactor(result.LD, result.pivots)


def _unpack(packed: Array, pivots: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Return the order of rows, L and D of one matrix; a swap also exchanges rows in the earlier columns of L."""
    n = len(packed)
    order, lower, blocks = np.arange(n), np.tril(packed, -1), np.zeros_like(packed)
    k = 0
    while k < n:
        step = 1 if pivots[k] > 0 else 2
        one, other = k + step - 1, abs(int(pivots[k])) - 1
        order[[one, other]] = order[[other, one]]
        lower[[one, other], :k] = lower[[other, one], :k]
        blocks[k : k + step, k : k + step] = _block(packed[k : k + step, k : k + step], hermitian)
        lower[k : k + step, k : k + step] = 0
        k += step
    return order, lower, blocks


@operation(function="linalg.ldl_solve")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """Return ``X`` ``(..., n, k)`` with ``A @ X = B``, from the results of ``linalg.ldl_factor(A)``.

    It has a gradient for ``B`` only.

    Args:
        LD: factors ``(..., n, n)``.
        pivots: int32, ``(..., n)``.
        B: right sides ``(..., n, k)``.
        hermitian: whether complex matrices are Hermitian, as given to ``ldl_factor``.
        out: where the result is written.

    Raises:
        LinAlgError: ``A`` is singular.
        TypeError: the dtypes differ, are not floating-point or complex, or pivots are not int32.
        ValueError: the shapes do not fit.
    """
    x, y = square("linalg.ldl_solve", LD), matrices("linalg.ldl_solve", B)
    if pivots.dtype != np.int32:
        raise TypeError(f"linalg.ldl_solve() takes pivots of int32, and you gave {pivots.dtype}")
    if x.dtype != y.dtype:
        raise TypeError(f"linalg.ldl_solve() takes matrices of one dtype, and you gave {x.dtype} and {y.dtype}")
    if pivots.shape != x.shape[:-1] or x.shape[-1] != y.shape[-2]:
        raise ValueError(f"linalg.ldl_solve() cannot solve {x.shape} with pivots {pivots.shape} for {y.shape}")
    flip = hermitian and x.dtype.kind == "c"
    shift, lower, blocks = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for index in np.ndindex(x.shape[:-2]):
        order, lower[index], blocks[index] = _unpack(x[index], pivots._array[index], flip)
        shift[index][np.arange(len(order)), order] = 1
    ahead, unit = Tensor(shift), Tensor(lower)
    half = solved(Tensor(blocks), triangle_solved(unit, matmul(ahead, B), False, True))
    return matmul(ahead.mT, triangle_solved(unit.mH if flip else unit.mT, half, True, True))
