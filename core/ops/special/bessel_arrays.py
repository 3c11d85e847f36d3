"""Bessel functions of orders 0 and 1 on arrays, in double precision: J and Y, and the modified I and K.

Near 0 they are computed by power series (M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 9.1.10-13 and
9.6.10-13; DLMF 10.8 and 10.31). Far from 0, by the asymptotic form times a smooth function of 1/x, which is a Chebyshev fit to
an integral:

* J, Y and K: Hankel's integral (G. N. Watson, "Theory of Bessel Functions", 6.12 and 7.2; DLMF 10.32.8), ``2/gamma(n + 1/2)``
  times the integral of ``exp(-v**2) v**(2n) (1 + v**2/(2z))**(n - 1/2)`` over positive v, with z = -ix or x;
* I: the integral of ``exp(x (cos t - 1)) cos(n t) / pi`` from 0 to pi (DLMF 10.32.3).

The trapezoidal rule gives these integrals to the last digits: L. N. Trefethen and J. A. C. Weideman, "The exponentially
convergent trapezoidal rule", SIAM Review 56 (2014), 385-458. A fit (``Fit``) is computed when it is first used, in about a
millisecond, so there are no tables of numbers to copy.

Compared with 40-digit arithmetic, the relative error of I and K is below 1e-14, the error of J and Y below 2e-15.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from ...types import Array
from .evaluation import in_double, polynomial

_COUNT = 61


class Fit:
    """Chebyshev approximation of a function on an interval, to about 15 digits if the function is smooth there.

    Args:
        function: the function, from a float64 array to one of the same shape.
        low: the lower end of the interval.
        high: the upper end of the interval.
    """

    def __init__(self, function: Callable[[Array], Array], low: float, high: float) -> None:
        self._function = function
        self._middle, self._radius = (low + high) / 2, (high - low) / 2

    @cached_property
    def _coefficients(self) -> Array:
        # Interpolation at the zeros of the Chebyshev polynomial of degree _COUNT. Angles are reduced before they are rounded.
        odd = 2 * np.arange(_COUNT) + 1
        cosines = np.cos(np.arange(_COUNT)[:, None] * odd % (4 * _COUNT) * (np.pi / (2 * _COUNT)))
        values = self._function(self._middle + self._radius * cosines[1])
        found = 2 / _COUNT * cosines @ values
        found[0] /= 2
        # The last coefficients are only rounding errors.
        return np.asarray(np.polynomial.chebyshev.chebtrim(found, tol=3e-16 * float(np.abs(found).max())))

    def __call__(self, x: Array) -> Array:
        """Return the values at ``x``, a float64 array."""
        return np.asarray(np.polynomial.chebyshev.chebval((x - self._middle) / self._radius, self._coefficients))


_FAR_J, _FAR_I, _FAR_K = 5.0, 8.0, 2.0  # where the asymptotic forms begin
_TERMS = 27
_EULER = 0.57721566490153286061
_PSI = [-_EULER + sum(1 / k for k in range(1, n)) for n in range(1, _TERMS + 2)]  # psi(1), psi(2), ...


# -- near 0


def _series(order: int, weights: list[float]) -> list[float]:
    """Return the coefficients, highest power first, of the sum of ``weights[k] q**k / (k! (k + order)!)``."""
    return [weights[k] / (math.factorial(k) * math.factorial(k + order)) for k in reversed(range(_TERMS))]


_PLAIN = [_series(order, [1.0] * _TERMS) for order in (0, 1)]
_WITH_PSI = [_series(0, _PSI), _series(1, [_PSI[k] + _PSI[k + 1] for k in range(_TERMS)])]


def _near(order: int, x: Array, sign: int) -> Array:
    """Return J (``sign`` -1) or I (``sign`` 1) by its power series."""
    series = polynomial(sign * x * x / 4, _PLAIN[order])
    return x / 2 * series if order else series


def _near_second(order: int, x: Array, sign: int) -> Array:
    """Return Y times ``-pi/2`` (``sign`` -1), or K (``sign`` 1), by its power series."""
    series = polynomial(sign * x * x / 4, _WITH_PSI[order])
    logarithm = np.log(x / 2) * _near(order, x, sign)
    if order == 0:
        return series - logarithm
    return 1 / x + sign * (logarithm - x / 4 * series)


# -- far from 0


def _hankel(order: int, z: Array) -> Array:
    step = 0.2
    v = step * np.arange(33)
    weight = 2 * step / math.gamma(order + 0.5) * np.exp(-v * v) * v ** (2 * order)
    weight[0] /= 2
    return np.asarray((weight * (1 + v * v / (2 * z[:, None])) ** (order - 0.5)).sum(-1))


def _scaled_integral(order: int, x: Array) -> Array:
    """Return ``sqrt(x) exp(-x) I(x)``; the integrand is 0 beyond ``15 / sqrt(x)``."""
    end = np.minimum(np.pi, 15 / np.sqrt(x))[:, None]
    t = end * np.linspace(0, 1, 201)
    values = np.exp(-2 * x[:, None] * np.sin(t / 2) ** 2) * np.cos(order * t)
    values[:, [0, -1]] /= 2
    return np.asarray(np.sqrt(x) * end[:, 0] / 200 / np.pi * values.sum(-1))


# P and Q of Hankel's asymptotic form are even and odd in 1/x: these are P and xQ as functions of (_FAR_J / x)**2.


def _p(order: int, square: Array) -> Array:
    return _hankel(order, -1j * _FAR_J / np.sqrt(square)).real


def _xq(order: int, square: Array) -> Array:
    x = _FAR_J / np.sqrt(square)
    return x * _hankel(order, -1j * x).imag


def _scaled_i(order: int, ratio: Array) -> Array:
    return _scaled_integral(order, _FAR_I / ratio)


def _scaled_k(order: int, ratio: Array) -> Array:
    return math.sqrt(math.pi / 2) * _hankel(order, _FAR_K / ratio)


_P, _XQ, _I, _K = ([Fit(partial(f, order), 0, 1) for order in (0, 1)] for f in (_p, _xq, _scaled_i, _scaled_k))


def _far(order: int, x: Array, second: bool) -> Array:
    square = (_FAR_J / x) ** 2
    p, q = _P[order](square), _XQ[order](square) / x
    # The cosine and sine of x - pi/4 or x - 3pi/4, times sqrt(2), without rounding that difference.
    cosine, sine = np.sin(x) + np.cos(x), np.sin(x) - np.cos(x)
    if order:
        cosine, sine = sine, -cosine
    return np.asarray((p * sine + q * cosine if second else p * cosine - q * sine) / np.sqrt(np.pi * x))


# -- the functions


def _j(order: int, x: Array) -> Array:
    y = np.abs(x)
    near = [lambda y: _near(order, y, -1), lambda y: _far(order, y, False)]
    result = np.piecewise(y, [y < _FAR_J], near)
    return np.copysign(1.0, x) * result if order else result


def _y(order: int, x: Array) -> Array:
    near = [lambda y: _near_second(order, y, -1) * (-2 / np.pi), lambda y: _far(order, y, True)]
    result = np.piecewise(x, [x < _FAR_J], near)
    return np.where(x == 0, -np.inf, result)


def _i(order: int, scaled: bool, x: Array) -> Array:
    y = np.abs(x)

    def near(y: Array) -> Array:
        return _near(order, y, 1) * (np.exp(-y) if scaled else 1.0)

    def far(y: Array) -> Array:
        # exp(y) overflows before the result does.
        root = 1.0 if scaled else np.exp(y / 2)
        return np.asarray(_I[order](_FAR_I / y) / np.sqrt(y) * root * root)

    result = np.where(np.isinf(y), 0.0 if scaled else np.inf, np.piecewise(y, [y < _FAR_I], [near, far]))
    return np.copysign(1.0, x) * result if order else result


def _k(order: int, scaled: bool, x: Array) -> Array:
    def near(y: Array) -> Array:
        return _near_second(order, y, 1) * (np.exp(y) if scaled else 1.0)

    def far(y: Array) -> Array:
        return _K[order](_FAR_K / y) / np.sqrt(y) * (1.0 if scaled else np.exp(-y))

    return np.where(x == 0, np.inf, np.piecewise(x, [x < _FAR_K], [near, far]))


def _function(formula: Callable[..., Array], *params: object) -> Callable[[Array], Array]:
    return lambda x: in_double(lambda wide: formula(*params, wide), x)


j0, j1 = _function(_j, 0), _function(_j, 1)
y0, y1 = _function(_y, 0), _function(_y, 1)
i0, i1, i0e, i1e = (_function(_i, order, scaled) for scaled in (False, True) for order in (0, 1))
k0, k1, k0e, k1e = (_function(_k, order, scaled) for scaled in (False, True) for order in (0, 1))
