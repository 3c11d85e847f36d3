"""Airy function Ai and its derivative on arrays, in double precision.

Near 0 they are computed by the power series (DLMF 9.4.1). Far from 0, with ``z = 2/3 |x|**1.5``, by the asymptotic form (DLMF
9.7.5 and 9.7.9) times a smooth function of 1/z. That function is a Chebyshev fit to the integral of
``exp(-sqrt(x) t**2) cos(t**3/3)`` (DLMF 9.5.6 without its exponential factor); its values at ``|x| exp(i pi/3)`` give the
function at negative x (DLMF 9.2.14).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ...types import Array
from .bessel_arrays import Fit
from .evaluation import in_double

_NEAR = 2.0
_NEAREST = 2 / 3 * _NEAR**1.5  # z there
_AT_0, _SLOPE_AT_0 = 1 / (3 ** (2 / 3) * math.gamma(2 / 3)), -1 / (3 ** (1 / 3) * math.gamma(1 / 3))


def airy_ai(x: Array) -> Array:
    """Return Ai(x), the solution of ``y'' = x y`` that tends to 0 for large x (DLMF 9.2)."""
    return in_double(lambda wide: _airy(wide, False), x)


def airy_ai_prime(x: Array) -> Array:
    """Return the derivative of Ai(x)."""
    return in_double(lambda wide: _airy(wide, True), x)


def _airy(x: Array, slope: bool) -> Array:
    pieces = [lambda x: _series(x, slope), lambda x: _right(x, slope), lambda x: _left(-x, slope)]
    result = np.piecewise(x, [np.abs(x) < _NEAR, x >= _NEAR], pieces)
    return np.where(np.isnan(x), x, np.where(np.isposinf(x), 0.0, result))


def _series(x: Array, slope: bool) -> Array:
    # From y'' = x y: each coefficient follows from the third one before it.
    coefficients = [_AT_0, _SLOPE_AT_0, 0.0]
    for n in range(3, 42):
        coefficients.append(coefficients[n - 3] / (n * (n - 1)))
    if slope:
        coefficients = [n * each for n, each in enumerate(coefficients)][1:]
    return np.asarray(np.polynomial.polynomial.polyval(x, coefficients))


def _integral(z: Array, slope: bool, rotation: complex) -> Array:
    """Return the integral over the real line at ``x * rotation``, scaled so that it tends to sqrt(pi) for large z."""
    step = 0.05
    v = step * np.arange(-150, 151)
    z = z[:, None]
    root = np.sqrt(rotation)
    with np.errstate(under="ignore"):
        values = np.exp(-root * v * v) * np.cos(v**3 / (3 * np.sqrt(1.5 * z)))
    if slope:
        values = values * (root + v * v / (3 * z * root))
    return np.asarray(step * values.sum(-1))


_ROTATION = np.exp(1j * np.pi / 3)


def _real(slope: bool, rotation: complex, w: Array) -> Array:
    return _integral(1 / w, slope, rotation).real


def _imaginary(slope: bool, rotation: complex, w: Array) -> Array:
    return _integral(1 / w, slope, rotation).imag


def _fits(part: Callable[..., Array], rotation: complex) -> list[Fit]:
    """Return the fits, in 1/z, for the function and for its derivative."""
    return [Fit(partial(part, slope, rotation), 0, 1 / _NEAREST) for slope in (False, True)]


_RIGHT, _LEFT_REAL, _LEFT_IMAGINARY = _fits(_real, 1.0), _fits(_real, _ROTATION), _fits(_imaginary, _ROTATION)


def _right(x: Array, slope: bool) -> Array:
    z = 2 / 3 * x * np.sqrt(x)
    scaled = np.exp(-z) * _RIGHT[slope](1 / z) / (2 * np.pi)
    quarter = np.sqrt(np.sqrt(x))
    return np.asarray(-scaled * quarter if slope else scaled / quarter)


def _left(x: Array, slope: bool) -> Array:
    """Return the function at ``-x``: twice the real part of ``exp(i pi/3)`` times its value at ``x exp(i pi/3)``."""
    z = 2 / 3 * x * np.sqrt(x)
    quarter = np.sqrt(np.sqrt(x))
    integral = _LEFT_REAL[slope](1 / z) + 1j * _LEFT_IMAGINARY[slope](1 / z)
    # The derivative with respect to -x has the opposite sign and one more factor of exp(i pi/3).
    scaled = (_ROTATION * _ROTATION if slope else _ROTATION) * np.exp(-1j * z) * integral / np.pi
    return np.asarray(scaled.real * quarter if slope else scaled.real / quarter)
