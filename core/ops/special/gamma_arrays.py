"""Logarithm of the gamma function, its derivatives, and the Hurwitz zeta function on arrays, in double precision.

The logarithm is moved by recurrence to where the asymptotic series (Stirling's formula) is exact to the last digit, and by
reflection for negative numbers: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 6.1, 6.3 and 6.4. Near 1
and 2, where the logarithm is 0, it is computed by its Taylor series. Zeta is computed by the Euler-Maclaurin formula (A&S 23.2;
DLMF 25.11.5 and 2.10.1), with a relative error below 2e-14 for positive ``q``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...types import Array
from .evaluation import in_double, in_single_or_double, polynomial

# Bernoulli numbers B2, B4, ...
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_STEPS = 12


def zeta(s: Any, q: Array) -> Array:
    """Return the sum of ``(q + k)**-s`` over ``k >= 0``, for float64 arrays that are broadcast (``s`` may be a number).

    It is inf for ``s`` = 1 and for ``q`` = 0, -1, ...; nan for ``s`` < 1, and for ``q`` < 0 unless ``s`` is an integer.
    """
    with np.errstate(all="ignore"):
        result = _of_positive(s, np.abs(q))
        negative = q < 0
        if negative.any():
            # The sum for a negative q is the sum for a positive one plus a finite number of terms with another sign.
            fraction = q - np.floor(q)
            sign = np.where(np.floor(s) == s, 1.0 - 2.0 * (np.floor(s) % 2), np.nan)
            folded = _of_positive(s, fraction) + sign * (_of_positive(s, 1 - fraction) - _of_positive(s, 1 - q))
            result = np.where(negative, folded, result)
        if (q <= 0).any():
            result = np.where((q <= 0) & (q == np.floor(q)), np.inf, result)
        if isinstance(s, float) and s > 1:
            return result
        result = np.where(s == 1, np.inf, np.where(s < 1, np.nan, result))
    return np.where(np.isnan(s) | np.isnan(q), np.nan, result)


def _of_positive(s: Any, q: Array) -> Array:
    result: Array = np.zeros(np.broadcast_shapes(np.shape(s), q.shape))
    for step in range(_STEPS):
        result += _inverse_power(q + step, s)
    far = q + _STEPS
    power, inverse = _inverse_power(far, s), 1 / (far * far)
    series: Any = 0.0
    for k, bernoulli in reversed(list(enumerate(BERNOULLI))):
        series = series * inverse
        series *= (s + 2 * k + 1) * (s + 2 * k + 2)
        series += bernoulli / math.factorial(2 * k + 2)
    rest = power * (far / (s - 1) + 0.5 + series * (s / far))
    return result + np.where(power == 0, 0.0, rest)  # not 0 times infinity


def _inverse_power(x: Array, s: Any) -> Any:
    # A small whole power by products costs a tenth of np.power.
    return 1 / math.prod([x] * int(s)) if isinstance(s, float) and s in (2, 3, 4) else x**-s


_FAR = 10  # where the asymptotic series begin
_NEAR = 6  # the same for results in float32
_LGAMMA_TERMS = [BERNOULLI[k] / ((2 * k + 2) * (2 * k + 1)) for k in reversed(range(8))]
_DIGAMMA_TERMS = [BERNOULLI[k] / (2 * k + 2) for k in reversed(range(8))]
_EULER = 0.5772156649015328606


def lgamma(x: Array) -> Array:
    """Return the logarithm of the absolute value of the gamma function: inf at 0 and the negative integers."""
    return in_single_or_double(_by_far(_lgamma_far, _lgamma), _lgamma, x)


def digamma(x: Array) -> Array:
    """Return the derivative of ``lgamma``: -inf at 0, inf at -0, nan at the negative integers."""
    return in_single_or_double(_by_far(_digamma_far, _digamma), _digamma, x)


def polygamma(n: int, x: Array) -> Array:
    """Return the derivative of order ``n`` of ``digamma``."""
    if n == 0:
        return digamma(x)
    return in_double(lambda wide: (-1.0) ** (n + 1) * math.gamma(n + 1) * zeta(n + 1.0, wide), x)


def _lgamma(x: Array) -> Array:
    y = np.where(x < 0.5, 1 - x, x)  # reflection
    result = np.empty_like(y)
    far = ~(np.abs(y - 1.5) <= 0.75)
    result[far], result[~far] = _stirling(y[far]), _taylor(y[~far])
    low = x < 0.5
    if low.any():
        with np.errstate(all="ignore"):
            sine = np.abs(np.sin(np.pi * _offset(x)))
            result = np.where(low, np.log(np.pi) - np.log(sine) - result, result)
    result = np.where((x <= 0) & (x == np.floor(x)), np.inf, result)
    return np.where(np.isnan(x), x, result)


def _steps(y: Array) -> Array:
    """Return the number of recurrence steps from ``y >= 0.5`` to at least ``_FAR``."""
    return np.clip(np.ceil(_FAR - y), 0, _FAR)


def _stirling(y: Array) -> Array:
    product = np.ones_like(y)
    steps = _steps(y)
    for step in range(_FAR):
        product *= np.where(step < steps, y + step, 1.0)
    far = y + steps
    with np.errstate(all="ignore"):
        result = _lgamma_series(far) - np.log(product)
    return np.where(np.isinf(far), np.inf, result)


def _lgamma_series(far: Array) -> Array:
    inverse = 1 / far
    result = polynomial(inverse * inverse, _LGAMMA_TERMS)
    result *= inverse
    result += (far - 0.5) * np.log(far)
    result -= far - math.log(2 * math.pi) / 2
    return result


def _digamma_series(far: Array) -> Array:
    inverse = 1 / far
    square = inverse * inverse
    result = polynomial(square, _DIGAMMA_TERMS)
    result *= -square
    result -= 0.5 * inverse
    result += np.log(far)
    return result


def _by_far(far: Callable[[Array], Array], exact: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function of float32 numbers: ``far`` where they are positive and finite, ``exact`` elsewhere, in float64.

    In float64 there are digits to spare, so that the recurrence is the same for all numbers.
    """

    def function(x: Array) -> Array:
        wide = x.astype(np.float64)
        with np.errstate(all="ignore"):
            result = far(wide)
        others = ~((x > 0) & (x < np.inf))
        if others.any():
            result[others] = exact(wide[others])
        return result

    return function


def _lgamma_far(y: Array) -> Array:
    product = y * (y + 1)
    for step in range(2, _NEAR):
        product *= y + step
    return _lgamma_series(y + _NEAR) - np.log(product)


def _digamma_far(y: Array) -> Array:
    # The sum of 1 / (y + step) as one fraction.
    above, below = np.ones_like(y), y.copy()
    for step in range(1, _NEAR):
        above *= y + step
        above += below
        below *= y + step
    return _digamma_series(y + _NEAR) - above / below


def _taylor(y: Array) -> Array:
    # lgamma(1 + z) for small |z|; near 2, lgamma(2 + z) = lgamma(1 + z) + log(1 + z).
    z = np.clip(y - np.where(y < 1.5, 1.0, 2.0), -0.5, 0.5)
    series: Array = z * polynomial(z, taylor_terms())
    return np.where(y < 1.5, series, series + np.log1p(z))


@cache
def taylor_terms() -> tuple[float, ...]:
    """Return the coefficients, highest power first, of the Taylor series of ``lgamma(1 + z) / z``."""
    terms = [(-1.0) ** k * float(zeta(float(k), np.ones(1))[0]) / k for k in range(2, 54)]
    return (*terms[::-1], -_EULER)


def _digamma(x: Array) -> Array:
    y = np.where(x < 0.5, 1 - x, x)
    result = np.zeros_like(y)
    steps = _steps(y)
    for step in range(_FAR):
        result -= np.where(step < steps, 1 / (y + step), 0.0)
    with np.errstate(all="ignore"):
        result += _digamma_series(y + steps)
        result = np.where(x < 0.5, result - np.pi / np.tan(np.pi * _offset(x)), result)
    result = np.where((x < 0) & (x == np.floor(x)), np.nan, result)
    return np.where(x == 0, np.copysign(np.inf, -x), result)


def _offset(x: Array) -> Array:
    # Distance to the nearest integer: the sine and tangent of a small angle are not affected by rounding.
    return x - np.round(x)
