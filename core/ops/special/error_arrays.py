"""Error function, its complement and its inverse on arrays, to the precision of their dtype.

Double precision: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969), 631-637.
Single precision: the rational function of Eigen's ``generic_fast_erf_float``. Tests compare with ``math.erf``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...types import Array

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
_SINGLE_ABOVE = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_SINGLE_BELOW = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def erf(x: Array) -> Array:
    """Return ``2/sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``."""
    if x.dtype == np.float32:
        return _by_blocks(_single, x)
    return in_double(_erf, x)


def erfc(x: Array) -> Array:
    """Return ``1 - erf(x)``, accurate also where it is close to 0."""
    return in_double(_erfc, x)


def erfcx(x: Array) -> Array:
    """Return ``exp(x**2) * erfc(x)``, without underflow for large ``x``."""
    return in_double(_erfcx, x)


def log_ndtr(x: Array) -> Array:
    """Return the logarithm of ``erfc(-x / sqrt(2)) / 2``, also where that underflows to 0."""
    return in_double(_log_ndtr, x)


def erfinv(x: Array) -> Array:
    """Return the number whose ``erf`` is ``x``: -inf at -1, inf at 1, nan outside [-1, 1]."""
    return in_double(_erfinv, x)


def in_double(function: Callable[..., Array], x: Any) -> Array:
    """Return ``function(x)`` computed in float64 and rounded to the dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.
    """
    x = np.asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"this operation takes real numbers only, and you gave {x.dtype}")
    return _by_blocks(lambda part: function(part.astype(np.float64, copy=False)), x)


def _by_blocks(function: Callable[[Array], Array], x: Any) -> Array:
    """Return ``function(x)``, computed in blocks that stay in the processor's cache; twice as fast for polynomials."""
    flat = np.ascontiguousarray(x).reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, 16384):
        part = slice(start, start + 16384)
        result[part] = function(flat[part])
    return result.reshape(np.shape(x))


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Return the polynomial at ``x`` by Horner's scheme, with one array for all intermediate results; highest power first."""
    result: Array = np.multiply(x, x.dtype.type(coefficients[0]))
    for coefficient in coefficients[1:-1]:
        result += x.dtype.type(coefficient)
        result *= x
    result += x.dtype.type(coefficients[-1])
    return result


def _single(x: Array) -> Array:
    x = np.clip(x, -4, 4)  # outside, erf is -1 or 1 in float32; nan stays nan
    square = x * x
    result = polynomial(square, _SINGLE_ABOVE)
    result *= x
    result /= polynomial(square, _SINGLE_BELOW)
    return np.clip(result, -1, 1)


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
