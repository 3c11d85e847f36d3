"""``Fit``: a function on an interval as a short sum of Chebyshev polynomials, found from a slow and exact formula.

The coefficients are computed at the first use (about a millisecond), so no table of numbers has to be copied or trusted.
Where the slow formula is an integral, the trapezoidal rule gives it to the last digits: L. N. Trefethen and
J. A. C. Weideman, "The exponentially convergent trapezoidal rule", SIAM Review 56 (2014), 385-458.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev

from ...types import Array

_COUNT = 61


class Fit:
    """``function`` between ``low`` and ``high``, to about 15 digits if it is smooth there; float64 arrays."""

    def __init__(self, function: Callable[[Array], Array], low: float, high: float) -> None:
        self._function = function
        self._middle, self._radius = (low + high) / 2, (high - low) / 2

    @cached_property
    def _coefficients(self) -> Array:
        # Interpolation at the zeros of the polynomial of degree _COUNT. Angles are reduced before they are rounded.
        odd = 2 * np.arange(_COUNT) + 1
        cosines = np.cos(np.arange(_COUNT)[:, None] * odd % (4 * _COUNT) * (np.pi / (2 * _COUNT)))
        values = self._function(self._middle + self._radius * cosines[1])
        found = 2 / _COUNT * cosines @ values
        found[0] /= 2
        # The last ones are rounding errors only.
        return np.asarray(chebyshev.chebtrim(found, tol=3e-16 * float(np.abs(found).max())))

    def __call__(self, x: Array) -> Array:
        """Return the values at ``x``."""
        return np.asarray(chebyshev.chebval((x - self._middle) / self._radius, self._coefficients))
