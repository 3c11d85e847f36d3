"""Determinants: ``det``, ``slogdet``, ``logdet``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..elementwise import basic
from ..elementwise.complex_numbers import imag, real
from ..elementwise.conversion import clone
from ..table.nodes import ARRAYS, Row, keep, keep_result, record, records
from ..table.operation import operation
from .checks import square


class SignLogabsdet(NamedTuple):
    """What ``slogdet`` returns."""

    sign: Tensor
    logabsdet: Tensor


def _det_rule(xp: Any, g: Any, a: Any, out: Any) -> Any:
    # Jacobi's formula. A singular matrix has cofactors too, but no inverse to make them of.
    values = out if xp is ARRAYS else out._array
    if xp is ARRAYS and (np.asarray(values) == 0).any():
        return np.asarray(g)[..., None, None] * np.conjugate(_cofactors(a))
    scale = xp.reshape(g * xp.conj(out), (*values.shape, 1, 1))
    return scale * xp.adjoint(xp.inv(a))


def _cofactors(a: Array) -> Array:
    u, s, vh = np.linalg.svd(a)
    others = np.stack([np.delete(s, place, -1).prod(-1) for place in range(s.shape[-1])], -1)
    signs = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray(np.conjugate(np.matmul(u * others[..., None, :], vh)) * signs[..., None, None])


def _slogdet_rule(xp: Any, g: Any, a: Any) -> Any:
    return xp.reshape(g, (*a.shape[:-2], 1, 1)) * xp.adjoint(xp.inv(a))


_DET = Row("linalg_det", _det_rule, holomorphic=False)
_SLOGDET = Row("linalg_slogdet", _slogdet_rule, holomorphic=False)


@operation(method=True, synonyms=("linalg.det",))
def det(input: Tensor) -> Tensor:
    """The determinants of square matrices ``(..., n, n)``.

    Raises:
        TypeError: not of floating point.
        ValueError: not square.
    """
    x = square("linalg.det", input)
    with np.errstate(over="ignore", invalid="ignore"):
        result = Tensor(np.asarray(np.linalg.det(x)))
    return record(_DET, result, (input,), (keep(input), keep_result(result))) if records(input) else result


@operation(method=True, synonyms=("linalg.slogdet",))
def slogdet(input: Tensor) -> SignLogabsdet:
    """The determinants' signs (of complex matrices, directions) and the logarithms of their sizes.

    A singular matrix gives 0 and -inf, and has no gradient.

    Raises:
        TypeError: not of floating point.
        ValueError: not square.
    """
    sign, logabsdet = np.linalg.slogdet(square("linalg.slogdet", input))
    if records(input) and sign.dtype.kind == "c":
        logarithm = _logarithm(input, sign, logabsdet)
        direction = basic.exp(imag(logarithm) * Tensor(np.asarray(1j, sign.dtype))) * Tensor(np.asarray(sign != 0))
        return SignLogabsdet(direction, clone(real(logarithm)))
    return SignLogabsdet(Tensor(np.asarray(sign)), _recorded(input, logabsdet))


def _logarithm(input: Tensor, sign: Array, logabsdet: Array) -> Tensor:
    """The logarithm of a complex determinant, of which the sign too has a gradient."""
    return _recorded(input, logabsdet + np.angle(sign) * sign.dtype.type(1j))


def _recorded(input: Tensor, logarithm: Any) -> Tensor:
    result = Tensor(np.asarray(logarithm))
    return record(_SLOGDET, result, (input,), (keep(input),)) if records(input) else result


@operation(method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants: nan where a real one is negative, -inf where it is 0. Errors: ``slogdet``'s."""
    if input.dtype.kind == "c":
        return _logarithm(input, *np.linalg.slogdet(square("linalg.logdet", input)))
    sign, result = slogdet(input)
    negative = sign._array < 0
    return result.masked_fill(Tensor(negative), float("nan")) if negative.any() else result
