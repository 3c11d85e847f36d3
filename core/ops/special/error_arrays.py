"""Error function, its complement and its inverse on arrays, to the precision of their dtype.

Double precision: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969), 631-637.
Single precision: ``single_error_arrays``. Tests compare with ``math.erf``.
"""

from __future__ import annotations

import numpy as np

from ...types import Array
from . import single_error_arrays as single
from .evaluation import LONG_BLOCK, in_double, in_single_or_double, polynomial

# Coefficients of numerators (ABOVE) and denominators (BELOW), highest power first.
_SMALL_ABOVE = (
    1.85777706184603153e-1,
    3.16112374387056560e00,
    1.13864154151050156e02,
    3.77485237685302021e02,
    3.20937758913846947e03,
)
_SMALL_BELOW = (
    1.0,
    2.36012909523441209e01,
    2.44024637934444173e02,
    1.28261652607737228e03,
    2.84423683343917062e03,
)
_MIDDLE_ABOVE = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e00,
    6.61191906371416295e01,
    2.98635138197400131e02,
    8.81952221241769090e02,
    1.71204761263407058e03,
    2.05107837782607147e03,
    1.23033935479799725e03,
)
_MIDDLE_BELOW = (
    1.0,
    1.57449261107098347e01,
    1.17693950891312499e02,
    5.37181101862009858e02,
    1.62138957456669019e03,
    3.29079923573345963e03,
    4.36261909014324716e03,
    3.43936767414372164e03,
    1.23033935480374942e03,
)
_LARGE_ABOVE = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_LARGE_BELOW = (
    1.0,
    2.56852019228982242e00,
    1.87295284992346047e00,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def erf(x: Array) -> Array:
    """Return ``2/sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``."""
    return in_single_or_double(single.erf, _erf, x, LONG_BLOCK)


def erfc(x: Array) -> Array:
    """Return ``1 - erf(x)``, accurate also where it is close to 0."""
    return in_single_or_double(single.erfc, _erfc, x, LONG_BLOCK)


def erfcx(x: Array) -> Array:
    """Return ``exp(x**2) * erfc(x)``, without underflow for large ``x``."""
    return in_double(_erfcx, x)


def log_ndtr(x: Array) -> Array:
    """Return the logarithm of ``erfc(-x / sqrt(2)) / 2``, also where that underflows to 0."""
    return in_double(_log_ndtr, x)


def erfinv(x: Array) -> Array:
    """Return the number whose ``erf`` is ``x``: -inf at -1, inf at 1, nan outside [-1, 1]."""
    return in_single_or_double(single.erfinv, _erfinv, x, LONG_BLOCK)


def _erf(x: Array) -> Array:
    result = np.copysign(1.0 - _tail(np.abs(x)), x)
    small = np.abs(x) <= 0.5
    result[small] = _centre(x[small])
    return result


def _erfc(x: Array) -> Array:
    tail = _tail(np.abs(x))
    result = np.where(x < 0, 2.0 - tail, tail)
    small = np.abs(x) <= 0.5
    result[small] = 1.0 - _centre(x[small])
    return result


def _centre(x: Array) -> Array:
    square = x * x
    return x * polynomial(square, _SMALL_ABOVE) / polynomial(square, _SMALL_BELOW)


def _erfcx(x: Array) -> Array:
    y = np.abs(x)
    small = y <= 0.5
    scaled = _scaled_tail(np.where(small, 1.0, y))
    scaled[small] = np.exp(x[small] ** 2) * (1.0 - _centre(y[small]))
    return np.where(x < 0, 2 * np.exp(x * x) - scaled, scaled)


def _log_ndtr(x: Array) -> Array:
    scaled = x * 0.5**0.5
    left = np.log(_erfcx(np.maximum(-scaled, 0.5)) / 2) - scaled * scaled
    return np.where(x < -1, left, np.log1p(-_erfc(scaled) / 2))


def _tail(y: Array) -> Array:
    """Return ``erfc(y)`` for ``y >= 0.5``; the results for smaller ``y`` are not used."""
    y = np.minimum(y, 30.0)  # erfc is 0 from there on
    # exp(-y*y) as two factors, so that the rounding of y*y is not magnified.
    rough = np.trunc(y * 16) / 16
    result: Array = np.exp(-rough * rough) * np.exp(-(y - rough) * (y + rough)) * _scaled_tail(y)
    return result


def _scaled_tail(y: Array) -> Array:
    """Return ``erfcx(y)`` for ``y >= 0.5``; the results for smaller ``y`` are not used."""
    near = np.minimum(y, 4.0)
    scaled = polynomial(near, _MIDDLE_ABOVE) / polynomial(near, _MIDDLE_BELOW)
    large = y > 4
    far = y[large]
    square = 1 / (far * far)
    scaled[large] = (
        1 / np.sqrt(np.pi) - square * polynomial(square, _LARGE_ABOVE) / polynomial(square, _LARGE_BELOW)
    ) / far
    return scaled


def _erfinv(x: Array) -> Array:
    # S. Winitzki's approximation, whose error is below 0.002, then Halley's method: each step triples the number of digits.
    complement = 1 - np.abs(x)
    product = np.log(complement * (1 + np.abs(x)))
    half = 2 / (np.pi * 0.147) + product / 2
    y = np.sqrt(np.sqrt(half * half - product / 0.147) - half)
    central = np.abs(x) < 0.5
    for _ in range(3):
        error = np.where(central, _erf(y) - np.abs(x), complement - _erfc(y))
        step = error * np.sqrt(np.pi) / 2 * np.exp(y * y)
        y = y - step / (1 + y * step)
    y = np.where(complement == 0, np.inf, np.where(x == 0, 0.0, y))
    return np.copysign(y, x)
