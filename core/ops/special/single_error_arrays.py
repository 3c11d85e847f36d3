"""Error function, its complement and its inverse in single precision, to about two units in the last place.

Each is a polynomial between elementary functions, as NumPy computes both at several numbers at a time. The coefficients are
minimax fits (Lawson's algorithm) of the relative error over the range that float32 has.
"""

from __future__ import annotations

import numpy as np

from ...types import Array
from ..table.blockwise import blockwise
from .evaluation import polynomial

# atanh(erf(x)) / x in powers of x * x, for |x| < 3.95: from there on, erf is 1.
_ERF = (
    5.4220132209704055e-09,
    2.7565445581758542e-08,
    -4.794503072531067e-06,
    8.459612404544234e-05,
    -0.0006148372264794984,
    -0.00019528921270820605,
    0.10276986455801036,
    1.128379247140174,
)
# -2 * atanh(erf(x / sqrt(2))) / x in powers of x * x.
_SHARE = tuple(-(2**0.5) * value * 0.5**power for power, value in zip(range(len(_ERF) - 1, -1, -1), _ERF))
# exp(x * x) * erfc(x) / t in powers of t = 1 / (1 + 0.4 * x), for 0 <= x < 10.2.
_ERFC = (
    0.04161267824293602,
    -0.14208080714864205,
    0.0876553045919969,
    0.08373489477886399,
    0.0827019024004364,
    0.19212829433563788,
    0.20221380415716064,
    0.22639703774357728,
    0.22563695429636987,
)
# erfinv(x) / x in powers of w - 2.5, with w = -log(1 - x * x) up to 5; from there on, of sqrt(w) - 3.
_CENTRE = (
    2.8534970865828126e-08,
    3.4372374201757517e-07,
    -3.5288639439591403e-06,
    -4.396751320106562e-06,
    0.0002186022191114643,
    -0.001253707589146426,
    -0.004177707785372273,
    0.24664072616355873,
    1.5014094215858247,
)
_TAIL = (
    -0.00015977817711961066,
    8.252703166988827e-05,
    0.001292238470150696,
    -0.003656549585062457,
    0.005765547823547262,
    -0.007626241561336476,
    0.009435036914927409,
    1.001674232310428,
    2.8329770041886335,
)


@blockwise
def erf(x: Array) -> Array:
    """Return ``erf(x)`` of float32 numbers."""
    x = np.clip(x, -3.95, 3.95)  # nan stays nan
    result = polynomial(x * x, _ERF)
    result *= x
    return np.tanh(result, out=result)


@blockwise
def normal_share(x: Array) -> Array:
    """Return ``(1 + erf(x / sqrt(2))) / 2`` of float32 numbers, the share of a normal distribution below ``x``.

    As erf is a hyperbolic tangent, this is the sigmoid of twice its argument. Where erf is 1, that is too large, which is
    right here as well.
    """
    x = np.clip(x, -8.4, 8.4)
    result = polynomial(x * x, _SHARE)
    result *= x
    np.exp(result, out=result)  # where it overflows, one over infinity is 0
    result += 1
    return np.divide(1, result, out=result)


def erfc(x: Array) -> Array:
    """Return ``erfc(x)`` of float32 numbers."""
    y = np.clip(x, -11, 11)
    np.abs(y, out=y)
    wide = y.astype(np.float64)  # the rounding of y * y would be magnified
    wide *= -wide
    result: Array = np.exp(wide, out=wide).astype(np.float32)
    t = y
    t *= np.float32(0.4)
    t += 1
    np.divide(1, t, out=t)
    result *= t
    result *= polynomial(t, _ERFC)
    # erfc(-x) = 2 - erfc(x), by bits: a choice where signs vary costs many times as much. The sign bit, one place lower, is 2.
    bits = result.view(np.uint32)
    sign = np.bitwise_and(x.view(np.uint32), np.uint32(1 << 31))
    np.bitwise_xor(bits, sign, out=bits)
    np.right_shift(sign, 1, out=sign)
    result += sign.view(np.float32)
    return result


def erfinv(x: Array) -> Array:
    """Return the number whose ``erf`` is ``x``, of float32 numbers."""
    with np.errstate(all="ignore"):
        w = -np.log((1 - x) * (1 + x))
        result = polynomial(w - np.float32(2.5), _CENTRE)
        far = w > 5
        if far.any():
            root = np.sqrt(w[far])
            result[far] = np.where(root == np.inf, root, polynomial(root - 3, _TAIL))
        result *= x
    return result
