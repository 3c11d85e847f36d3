"""Determinants, powers, exponentials and chains of matrices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import float32
from ...tensors import Tensor
from ...types import Array
from ..elementwise import exponential
from ..elementwise.complex_numbers import imag, real
from ..elementwise.conversion import clone, to
from ..shape.reshaping import unsqueeze
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import ARRAYS, TENSORS, Row
from .checks import square
from .matrix_products import matmul
from .solving import inv


@operation(method=True, synonyms=("linalg.matrix_power",))
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Return the ``n``-th power of square matrices ``(..., m, m)``.

    Args:
        input: matrices ``(..., m, m)``.
        n: the exponent; a negative one is a power of the inverse.
        out: where the result is written.

    Raises:
        LinAlgError: ``n`` is negative, and a matrix is singular.
        ValueError: not square.
    """
    x = input._array
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"linalg.matrix_power() takes square matrices, and you gave shape {x.shape}")
    if n == 0:
        result = Tensor(np.array(np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)))
    else:
        result = _power(input if n > 0 else inv(input), abs(n))
    return result


def _power(matrix: Tensor, n: int) -> Tensor:
    result = None
    while True:
        if n & 1:
            result = matrix if result is None else matmul(result, matrix)
        n >>= 1
        if not n:
            assert result is not None
            return result
        matrix = matmul(matrix, matrix)


def _exp_rule(xp: Any, g: Any, a: Any) -> Any:
    # The derivative in a direction is a block of the exponential of a matrix twice as large (Najfeld and Havel,
    # "Derivatives of the matrix exponential and their computation", 1995, theorem 4.13). Its adjoint is the derivative
    # at a.mH. It is linear in the direction, which is made small, because matrices of a large norm are squared more often.
    n = a.shape[-1]
    h = xp.adjoint(a)
    zeros = h * 0
    scale = _norm(g if xp is ARRAYS else g._array)
    blocks = xp.concatenate([xp.concatenate([h, g / scale], -1), xp.concatenate([zeros, h], -1)], -2)
    return xp.get(xp.matrix_exp(blocks), (..., slice(0, n), slice(n, 2 * n))) * scale


def _norm(x: Array) -> Any:
    """Return the largest sum of the absolute values of a column, or 1 if that is 0 or not finite, as a Python number."""
    norm = float(np.abs(x).sum(-2).max()) if x.size else 0.0
    return norm if 0 < norm < math.inf else 1.0


_EXP = Row("linalg_matrix_exp", _exp_rule, holomorphic=False)
_TAYLOR = [1 / math.factorial(k) for k in range(17)]
# Up to these norms, the result of the polynomial of degree 16 is the exponential of a matrix that differs by no more than
# rounding: the sum of the absolute values in the series of log(exp(-x) * polynomial(x)) is below half of the dtype's eps.
_BOUNDS = {"f": 2.4782808775219713, "d": 0.7802874256626574}


@operation(method=True, synonyms=("linalg.matrix_exp",))
def matrix_exp(input: Tensor) -> Tensor:
    """Return the exponential of square matrices ``(..., n, n)``.

    It is computed by scaling, Taylor's polynomial of degree 16 and squaring, so by products alone: Bader, Blanes and Casas,
    "Computing the matrix exponential with an optimized Taylor polynomial approximation" (2019).

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    half = input.is_floating_point() and input.dtype.itemsize < 4
    if half:
        return to(matrix_exp(to(input, float32)), input.dtype)
    result = Tensor(exponentials(square("linalg.matrix_exp", input)))
    return record(_EXP, result, (input,), (keep(input),)) if records(input) else result


def exponentials(x: Array) -> Array:
    """Return ``matrix_exp`` on arrays."""
    if not x.size:
        return np.array(x)
    norms = np.abs(x).sum(-2).max(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        doublings = np.ceil(np.log2(norms / _BOUNDS[x.real.dtype.char]))
    doublings = np.where(np.isfinite(doublings), np.maximum(doublings, 0), 0).astype(np.int64)
    x = x / (2.0 ** doublings[..., None, None]).astype(x.real.dtype)
    result = _polynomial(x)
    for step in range(int(doublings.max())):
        result = np.where((step < doublings)[..., None, None], np.matmul(result, result), result)
    return result


def _polynomial(x: Array) -> Array:
    """Return Taylor's polynomial by six products: in powers of ``x**4``, with coefficients that are polynomials of ``x``."""
    second = np.matmul(x, x)
    third, fourth = np.matmul(second, x), np.matmul(second, second)
    diagonal = np.arange(x.shape[-1])
    result = fourth * x.dtype.type(_TAYLOR[16])
    for first in (12, 8, 4, 0):
        result = result if first == 12 else np.matmul(fourth, result)
        for factor, power in zip(_TAYLOR[first + 1 :], (x, second, third)):
            result += power * x.dtype.type(factor)
        result[..., diagonal, diagonal] += x.dtype.type(_TAYLOR[first])
    return np.asarray(result)


ARRAYS.matrix_exp, TENSORS.matrix_exp = exponentials, matrix_exp


@operation(function="linalg.multi_dot")
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Return the product of matrices, multiplied in the order of least work.

    The first and the last may be vectors: a row and a column, which the result lacks.

    Raises:
        TypeError: the dtypes differ.
        ValueError: fewer than two tensors, or shapes that do not fit.
    """
    parts = list(tensors)
    if len(parts) < 2:
        raise ValueError(f"linalg.multi_dot() multiplies at least 2 tensors, and you gave {len(parts)}")
    row, column = parts[0].ndim == 1, parts[-1].ndim == 1
    if row:
        parts[0] = unsqueeze(parts[0], 0)
    if column:
        parts[-1] = unsqueeze(parts[-1], 1)
    shapes = [part.shape for part in parts]
    if any(part.ndim != 2 for part in parts) or any(a[1] != b[0] for a, b in itertools.pairwise(shapes)):
        raise ValueError(f"linalg.multi_dot() cannot multiply shapes {', '.join(str(t.shape) for t in tensors)}")
    result = _chain(parts, _best_cuts([shape[0] for shape in shapes] + [shapes[-1][1]]), 0, len(parts) - 1)
    return result.reshape([n for n, drop in zip(result.shape, (row, column)) if not drop]) if row or column else result


def _best_cuts(lengths: list[int]) -> dict[tuple[int, int], int]:
    """Return the index after which to cut each part of the chain; matrix ``i`` is ``lengths[i]`` by ``lengths[i + 1]``.

    Cormen et al., "Introduction to Algorithms", 15.2.
    """
    count = len(lengths) - 1
    cost = {(i, i): 0 for i in range(count)}
    cuts = {}
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            cost[i, j], cuts[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1], k) for k in range(i, j)
            )
    return cuts


def _chain(parts: list[Tensor], cuts: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return parts[i]
    k = cuts[i, j]
    return matmul(_chain(parts, cuts, i, k), _chain(parts, cuts, k + 1, j))


@operation(function=True)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Return ``linalg.multi_dot`` of matrices given one by one; a single matrix is returned as it is."""
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


class SignLogabsdet(NamedTuple):
    """Result of ``slogdet``."""

    sign: Tensor
    logabsdet: Tensor


def _det_rule(xp: Any, g: Any, a: Any, out: Any) -> Any:
    # Jacobi's formula. A singular matrix has cofactors as well, but no inverse to compute them from.
    values = out if xp is ARRAYS else out._array
    if xp is ARRAYS and (np.asarray(values) == 0).any():
        return np.asarray(g)[..., None, None] * np.conjugate(_cofactors(a))
    scale = xp.reshape(g * xp.conj(out), (*values.shape, 1, 1))
    return scale * xp.adjoint(xp.inv(a))


def _cofactors(a: Array) -> Array:
    u, s, vh = np.linalg.svd(a)
    others = np.stack([np.delete(s, number, -1).prod(-1) for number in range(s.shape[-1])], -1)
    signs = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray(np.conjugate(np.matmul(u * others[..., None, :], vh)) * signs[..., None, None])


def _slogdet_rule(xp: Any, g: Any, a: Any) -> Any:
    return xp.reshape(g, (*a.shape[:-2], 1, 1)) * xp.adjoint(xp.inv(a))


_DET = Row("linalg_det", _det_rule, holomorphic=False)
_SLOGDET = Row("linalg_slogdet", _slogdet_rule, holomorphic=False)


@operation(method=True, synonyms=("linalg.det",))
def det(input: Tensor) -> Tensor:
    """Return the determinants ``(...)`` of square matrices ``(..., n, n)``.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    x = square("linalg.det", input)
    with np.errstate(over="ignore", invalid="ignore"):
        result = Tensor(np.asarray(np.linalg.det(x)))
    return record(_DET, result, (input,), (keep(input), keep_result(result))) if records(input) else result


@operation(method=True, synonyms=("linalg.slogdet",))
def slogdet(input: Tensor) -> SignLogabsdet:
    """Return the signs of determinants and the logarithms of their absolute values, both ``(...)``, of ``(..., n, n)``.

    The sign of a complex determinant has absolute value 1. A singular matrix gives 0 and -inf, and has no gradient.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    sign, logabsdet = np.linalg.slogdet(square("linalg.slogdet", input))
    if records(input) and sign.dtype.kind == "c":
        logarithm = _logarithm(input, sign, logabsdet)
        direction = exponential.exp(imag(logarithm) * Tensor(np.asarray(1j, sign.dtype))) * Tensor(
            np.asarray(sign != 0)
        )
        return SignLogabsdet(direction, clone(real(logarithm)))
    return SignLogabsdet(Tensor(np.asarray(sign)), _recorded(input, logabsdet))


def _logarithm(input: Tensor, sign: Array, logabsdet: Array) -> Tensor:
    """Return the logarithm of a complex determinant; the gradient of the sign follows from its imaginary part."""
    return _recorded(input, logabsdet + np.angle(sign) * sign.dtype.type(1j))


def _recorded(input: Tensor, logarithm: Any) -> Tensor:
    result = Tensor(np.asarray(logarithm))
    return record(_SLOGDET, result, (input,), (keep(input),)) if records(input) else result


@operation(method=True)
def logdet(input: Tensor) -> Tensor:
    """Return the logarithms ``(...)`` of determinants, nan where a real one is negative, -inf where it is 0.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    if input.dtype.kind == "c":
        return _logarithm(input, *np.linalg.slogdet(square("linalg.logdet", input)))
    sign, result = slogdet(input)
    negative = sign._array < 0
    return result.masked_fill(Tensor(negative), float("nan")) if negative.any() else result
