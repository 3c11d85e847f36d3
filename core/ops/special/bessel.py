"""Bessel functions of orders 0 and 1 and the Airy function Ai, as operations; ``bessel_arrays`` computes them.

Derivatives: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 9.1.27-28, 9.6.26-28 and 10.4.1. All take real
tensors of any shape and floating-point dtype (integers are converted to the default dtype). They are differentiable any
number of times, also those that have no gradient in PyTorch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...types import Array
from ..table.factories import Unary, unary
from ..table.operands import real_only
from ..table.rows import ARRAYS, TENSORS, Rule
from . import airy_arrays, bessel_arrays

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..table.operation import Declaration


def _over_argument(xp: Any, first: Any, order_0: Any, a: Any) -> Any:
    """Return ``first / a`` for a function of order 1; at 0, half of the function of order 0, which has the same gradient."""
    return xp.where(a == 0, order_0 * 0.5, first / xp.where(a == 0, 1.0, a))


def _spherical_j0(x: Array) -> Array:
    ratio = np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x))
    return np.where(np.isinf(x), 0.0, ratio).astype(x.dtype, copy=False)


_SLOPES = [(-1.0) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(9, 0, -1)]


def _spherical_rule(xp: Any, g: Any, a: Any) -> Any:
    # Near 0 the two terms cancel, so their difference is computed by its power series (A&S 10.1.2).
    near = abs(a) < 0.7
    little, far = xp.where(near, a, 0.0), xp.where(near, 1.0, a)
    series: Any = 0.0
    for coefficient in _SLOPES:
        series = series * (little * little) + coefficient
    return g * xp.where(near, little * series, (xp.cos(far) - xp.sin(far) / far) / far)


def _special(name: str, forward: Any, rule: Rule, doc: str, **declaration: Unpack[Declaration]) -> Unary:
    """Return an operation of ``telegrad.special`` that gradient rules can call as a function of ``xp``."""
    declaration = {"function": f"special.{name}", **declaration}
    operation = unary(name, forward, rule, saves="a", doc=doc, **declaration)
    setattr(ARRAYS, name, forward)
    setattr(TENSORS, name, operation)
    return operation


_B = bessel_arrays
bessel_j0 = _special(
    "bessel_j0",
    _B.j0,
    lambda xp, g, a: -g * xp.bessel_j1(a),
    "Return the Bessel function of the first kind and order 0, J0 (DLMF 10.2.2).",
)
bessel_j1 = _special(
    "bessel_j1",
    _B.j1,
    lambda xp, g, a: g * (xp.bessel_j0(a) - _over_argument(xp, xp.bessel_j1(a), xp.bessel_j0(a), a)),
    "Return the Bessel function of the first kind and order 1, J1 (DLMF 10.2.2).",
)
bessel_y0 = _special(
    "bessel_y0",
    _B.y0,
    lambda xp, g, a: -g * xp.bessel_y1(a),
    "Return the Bessel function of the second kind and order 0, Y0 (DLMF 10.2.3): -inf at 0, nan below 0.",
)
bessel_y1 = _special(
    "bessel_y1",
    _B.y1,
    lambda xp, g, a: g * (xp.bessel_y0(a) - xp.bessel_y1(a) / a),
    "Return the Bessel function of the second kind and order 1, Y1 (DLMF 10.2.3): -inf at 0, nan below 0.",
)
i0 = _special(
    "i0",
    _B.i0,
    lambda xp, g, a: g * xp.i1(a),
    "Return the modified Bessel function of the first kind and order 0, I0 (DLMF 10.25.2).",
    method=True,
    function=True,
    in_place=True,
    synonyms=("special.i0", "special.modified_bessel_i0"),
)
i1 = _special(
    "i1",
    _B.i1,
    lambda xp, g, a: g * (xp.i0(a) - _over_argument(xp, xp.i1(a), xp.i0(a), a)),
    "Return the modified Bessel function of the first kind and order 1, I1 (DLMF 10.25.2).",
    synonyms=("special.modified_bessel_i1",),
)
i0e = _special(
    "i0e",
    _B.i0e,
    lambda xp, g, a: g * (xp.i1e(a) - xp.sign(a) * xp.i0e(a)),
    "Return ``exp(-abs(input)) * i0(input)``, without overflow.",
)
i1e = _special(
    "i1e",
    _B.i1e,
    lambda xp, g, a: g * (xp.i0e(a) - _over_argument(xp, xp.i1e(a), xp.i0e(a), a) - xp.sign(a) * xp.i1e(a)),
    "Return ``exp(-abs(input)) * i1(input)``, without overflow.",
)
modified_bessel_k0 = _special(
    "modified_bessel_k0",
    _B.k0,
    lambda xp, g, a: -g * xp.modified_bessel_k1(a),
    "Return the modified Bessel function of the second kind and order 0, K0 (DLMF 10.25.3): inf at 0, nan below 0.",
)
modified_bessel_k1 = _special(
    "modified_bessel_k1",
    _B.k1,
    lambda xp, g, a: -g * (xp.modified_bessel_k0(a) + xp.modified_bessel_k1(a) / a),
    "Return the modified Bessel function of the second kind and order 1, K1 (DLMF 10.25.3): inf at 0, nan below 0.",
)
scaled_modified_bessel_k0 = _special(
    "scaled_modified_bessel_k0",
    _B.k0e,
    lambda xp, g, a: g * (xp.scaled_modified_bessel_k0(a) - xp.scaled_modified_bessel_k1(a)),
    "Return ``exp(input) * modified_bessel_k0(input)``, without underflow.",
)
scaled_modified_bessel_k1 = _special(
    "scaled_modified_bessel_k1",
    _B.k1e,
    lambda xp, g, a: g * (xp.scaled_modified_bessel_k1(a) * (1 - 1 / a) - xp.scaled_modified_bessel_k0(a)),
    "Return ``exp(input) * modified_bessel_k1(input)``, without underflow.",
)
spherical_bessel_j0 = _special(
    "spherical_bessel_j0",
    real_only(_spherical_j0),
    _spherical_rule,
    "Return the spherical Bessel function of the first kind and order 0, ``sin(input) / input`` (DLMF 10.49.3); it is 1 at 0.",
)
airy_ai = _special(
    "airy_ai",
    airy_arrays.airy_ai,
    lambda xp, g, a: g * xp.airy_ai_prime(a),
    "Return the Airy function Ai, the solution of ``y'' = input * y`` that tends to 0 for large ``input`` (DLMF 9.2).",
)
airy_ai_prime = _special(
    "airy_ai_prime",
    airy_arrays.airy_ai_prime,
    lambda xp, g, a: g * a * xp.airy_ai(a),
    "Return the derivative of ``airy_ai``.",
    function=False,
)
