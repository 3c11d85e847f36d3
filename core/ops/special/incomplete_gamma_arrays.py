"""Regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P on arrays, in double precision.

Each element is computed by the first of four methods that applies to it:

* ``x <= 1``: P by its power series (DLMF 8.7.1); Q by the same series, arranged so that it is accurate where Q is small;
* ``a > 30`` and x near a: Gauss-Legendre quadrature of the integrand, from x to where the integrand vanishes;
* ``x < a + 1``: P by a series of positive terms (DLMF 8.11.4, A&S 6.5.29);
* elsewhere: Q by its continued fraction (DLMF 8.9.2) with W. J. Lentz's method (1976).

The other of the two is the complement. Compared with 40-digit arithmetic, the relative error of the smaller of P and Q is below
1e-12 for a up to 1e6, and that of the larger below 1e-15.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ...types import Array
from .evaluation import polynomial
from .gamma_arrays import BERNOULLI, lgamma, taylor_terms

_LARGE = 30.0
_TINY = 1e-300
_Pair = tuple[Array, Array]


def lower_and_upper(a: Array, x: Array) -> _Pair:
    """Return P and Q for float64 arrays of one shape: nan where ``a`` or ``x`` is negative, or both are 0 or infinite."""
    a, x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        lower, upper = np.full(a.shape, np.nan), np.full(a.shape, np.nan)
        pending = (a >= 0) & (x >= 0) & ~((a == 0) & (x == 0)) & ~(np.isinf(a) & np.isinf(x))
        none, all_ = pending & ((x == 0) | np.isinf(a)), pending & ((a == 0) | np.isinf(x))
        lower[none], upper[none], lower[all_], upper[all_] = 0.0, 1.0, 1.0, 0.0
        pending &= ~none & ~all_
        for where, method in _methods(a, x):
            chosen = pending & where
            pending &= ~where
            if chosen.any():
                lower[chosen], upper[chosen] = method(a[chosen], x[chosen])
    return lower, upper


def density(a: Array, x: Array) -> Array:
    """Return ``x**a exp(-x) / gamma(a + 1)``, accurate also for large ``a``."""
    with np.errstate(all="ignore"):
        small = np.exp(a * np.log(x) - x - lgamma(a + 1))
        # With Stirling's formula the exponent depends only on the difference between x and a.
        large = np.exp(a * _log_ratio((x - a) / a) - _stirling_rest(a)) / np.sqrt(2 * np.pi * a)
    return np.where(a > _LARGE, large, small)


def _methods(a: Array, x: Array) -> list[tuple[Array, Callable[[Array, Array], _Pair]]]:
    near = (a > _LARGE) & (np.abs(x - a) < 0.4 * a)
    return [(x <= 1, _small), (near, _quadrature), (x < a + 1, _series), (x > 0, _fraction)]


def _small(a: Array, x: Array) -> _Pair:
    # P = x**a / gamma(a + 1) * (1 + a * rest), and x**a / gamma(a + 1) - 1 is small where a is.
    term, rest = np.ones_like(x), np.zeros_like(x)
    for n in range(1, 20):
        term = term * -x / n
        rest += term / (a + n)
    little = np.minimum(a, 0.5)
    logarithm = a * np.log(x) - np.where(a < 0.5, little * polynomial(little, taylor_terms()), lgamma(a + 1))
    lower = np.exp(logarithm) * (1 + a * rest)
    return lower, -np.expm1(logarithm) - np.exp(logarithm) * a * rest


def _series(a: Array, x: Array) -> _Pair:
    term, total, n = np.ones_like(x), np.ones_like(x), 0
    while (term > 1e-17 * total).any():
        n += 1
        term = term * x / (a + n)
        total += term
    lower = density(a, x) * total
    return lower, 1 - lower


def _fraction(a: Array, x: Array) -> _Pair:
    b = x + 1 - a
    c = np.full_like(x, 1 / _TINY)
    d = 1 / np.where(b == 0, _TINY, b)
    value, n = d, 0
    change = np.zeros_like(x)
    while (np.abs(change - 1) > 1e-16).any() and n < 5000:
        n += 1
        b = b + 2
        factor = n * (a - n)
        d = 1 / _nonzero(factor * d + b)
        c = _nonzero(b + factor / c)
        change = c * d
        value = value * change
        if n > 60 and (np.abs(change - 1) < 5e-16).all():
            break
    upper = density(a, x) * a * value
    return 1 - upper, upper


def _nonzero(value: Array) -> Array:
    return np.where(value == 0, _TINY, value)


@cache
def _gauss() -> _Pair:
    """Return the nodes and weights of Gauss's quadrature on [-1, 1]; not at import: numpy.polynomial is slow to load."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return np.asarray(nodes), np.asarray(weights)


def _quadrature(a: Array, x: Array) -> _Pair:
    """Integrate ``exp(a * _log_ratio(u)) / (1 + u)``, with t = a * (1 + u), on the side of x without the peak."""
    u = (x - a) / a
    right = u > 0
    # Until the logarithm is 40 lower: by the width of the Gaussian, or sooner where the integrand falls faster.
    width = 1 / np.sqrt(a)
    reach = np.where(right, 1.0, -1.0) * np.minimum(40 / np.maximum(a * np.abs(u), 1e-300), 9.5 * width) * 1.15
    end = np.maximum(u + reach, -1 + 1e-12)
    middle, half = (u + end)[..., None] / 2, (end - u)[..., None] / 2
    nodes, weights = _gauss()
    t = middle + half * nodes
    integral = np.abs(half[..., 0]) * (np.exp(a[..., None] * _log_ratio(t)) / (1 + t) * weights).sum(-1)
    part = integral * np.sqrt(a / (2 * np.pi)) * np.exp(-_stirling_rest(a))
    return np.where(right, 1 - part, part), np.where(right, part, 1 - part)


def _log_ratio(u: Array) -> Array:
    """Return ``log(1 + u) - u``, by its series for small ``u``."""
    little = np.clip(u, -0.1, 0.1)
    series = little * little * polynomial(little, [(-1.0) ** (k + 1) / k for k in range(18, 1, -1)])
    return np.where(np.abs(u) < 0.1, series, np.log1p(u) - u)


def _stirling_rest(a: Array) -> Array:
    """Return the logarithm of the gamma function minus Stirling's formula, for large ``a`` (A&S 6.1.41)."""
    terms = [BERNOULLI[k] / ((2 * k + 2) * (2 * k + 1)) for k in range(8)]
    safe = np.maximum(a, 10.0)
    return polynomial(1 / (safe * safe), terms[::-1]) / safe
