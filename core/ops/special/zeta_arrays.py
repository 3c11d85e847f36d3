"""The Hurwitz zeta function on arrays, in double precision, by the formula of Euler and Maclaurin (DLMF 25.11.5; 2.10.1).

The relative error is below 2e-14 where ``q`` is positive.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...types import Array

# Bernoulli numbers B2, B4, ...
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_STEPS = 12


def zeta(s: Any, q: Array) -> Array:
    """The sum of ``(q + k)**-s`` over ``k >= 0``, of float64 arrays that are broadcast (``s`` may be a number).

    Infinite for ``s`` = 1 and at 0, -1, ...; nan below ``s`` = 1, and for negative ``q`` unless ``s`` is whole.
    """
    with np.errstate(all="ignore"):
        result = _of_positive(s, np.abs(q))
        negative = q < 0
        if negative.any():
            # The terms of a negative q are those of two positive ones, of which one is cut off.
            fraction = q - np.floor(q)
            sign = np.where(np.floor(s) == s, 1.0 - 2.0 * (np.floor(s) % 2), np.nan)
            folded = _of_positive(s, fraction) + sign * (_of_positive(s, 1 - fraction) - _of_positive(s, 1 - q))
            result = np.where(negative, folded, result)
        result = np.where((q <= 0) & (q == np.floor(q)), np.inf, result)
        result = np.where(s == 1, np.inf, np.where(s < 1, np.nan, result))
    return np.where(np.isnan(s) | np.isnan(q), np.nan, result)


def _of_positive(s: Any, q: Array) -> Array:
    result: Array = np.zeros(np.broadcast_shapes(np.shape(s), q.shape))
    for step in range(_STEPS):
        result = result + (q + step) ** -s
    far = q + _STEPS
    power = far**-s
    rest = far * power / (s - 1) + power / 2
    factor = s * power / far
    for k, bernoulli in enumerate(BERNOULLI):
        rest = rest + bernoulli * factor / math.factorial(2 * k + 2)
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2) / (far * far)
    return result + np.where(power == 0, 0.0, rest)  # nothing is left where 0 would meet an infinity
