"""``log(1 + exp(x))`` and ``exp(x) - 1`` on arrays: the smooth parts of ``softplus``, ``elu`` and their relatives.

NumPy has vector instructions for ``log1p`` and ``expm1`` of float32 on few processors, and for ``exp`` on most. So elsewhere
both are short polynomials beside it, to three units in the last place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Array
from .evaluation import in_vectors, polynomial

# (2 * atanh(d / 2) / d - 1) / d**2 in powers of d * d, for 0 <= d <= 2/3; highest power first.
_BEYOND_LINEAR = (0.00054710912108149, 0.002187641033736573, 0.012506727263155399, 0.08333302035699507)

# (exp(c) - 1 - c) / c**2 in powers of c, for -_NEAR <= c <= 0.
_BEYOND_SLOPE = (
    0.0011259226219084571,
    0.008193295357941499,
    0.041632048444148556,
    0.16666288760023926,
    0.4999998647040268,
)
_NEAR = 0.5
_AT_NEAR = np.exp(np.full(64, -_NEAR, np.float32))[0]  # of an array, as below: where x is nearer, the difference is 0


def log1p_exp(x: Array) -> Any:
    """Return ``log(1 + exp(x))`` for ``x`` of at most 0, or nan.

    With u = exp(x) it is 2 * atanh(d / 2) for d = 2 * u / (2 + u), which is at most 2/3.

    Args:
        x: any shape, floating-point.
    """
    u = np.exp(x)
    if not u.ndim:
        return np.log1p(u)
    if u.dtype != np.float32 or in_vectors("log1p"):
        return np.log1p(u, out=u)
    d = u + 2
    u += u
    np.divide(u, d, out=d)
    square = np.multiply(d, d, out=u)
    result = polynomial(square, _BEYOND_LINEAR)
    result *= square
    result *= d
    result += d
    return result


def expm1_negative(x: Array) -> Any:
    """Return ``exp(min(x, 0)) - 1``.

    It is the sum of two: from 0 to at most -0.5 by a polynomial, and from there to x by exponentials, which are far from 1.

    Args:
        x: any shape, floating-point.
    """
    if x.dtype != np.float32 or not x.ndim or in_vectors("expm1"):
        below = np.clip(x, -np.inf, 0)
        return np.expm1(below, out=below) if below.ndim else np.expm1(below)
    near, far = np.clip(x, -_NEAR, 0), np.clip(x, -np.inf, -_NEAR)
    np.exp(far, out=far)
    far -= _AT_NEAR
    result = polynomial(near, _BEYOND_SLOPE)
    result *= near
    result *= near
    result += near
    result += far
    return result
