"""Checks of Bessel and Airy functions, the incomplete gamma functions, zeta and the orthogonal polynomials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import Tensor, special
from ...core.namespaces import functions_of
from ...core.ops.special.bessel import airy_ai_prime
from ...testing.ops import PAIRS, Make, OpCheck, Samples, unary

# Without the half-precision dtypes: these functions grow or decrease too quickly for their range.
DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")
BOTH_SIDES = unary(0.2, 9.0, signs=True)
RIGHT = unary(0.4, 9.0)


def with_fixed(low: float, high: float, bottom: float, top: float) -> Samples:
    """Return samples of two tensors for each of ``PAIRS``, of which the first has no gradient.

    Args:
        low: lower bound of the first tensor.
        high: upper bound of the first tensor.
        bottom: lower bound of the second tensor.
        top: upper bound of the second tensor.
    """

    def samples(make: Make) -> list[tuple[Tensor, Tensor]]:
        return [
            (make(*first, low=low, high=high, requires_grad=False), make(*second, low=bottom, high=top))
            for first, second in PAIRS
        ]

    return samples


def with_degrees(make: Make) -> list[tuple[Tensor, Tensor]]:
    """Return samples of points and degrees."""
    return [(make(*first, low=0.1, high=1.2, signs=True), make.integers(*second, high=7)) for first, second in PAIRS]


def numpy_polynomial(module: Any, values: str) -> Callable[..., Any]:
    """Return NumPy's function for the polynomial of degree n in a family.

    Args:
        module: the module of the family.
        values: the name of its function that evaluates a series.
    """

    def value(x: float, n: int) -> float:
        return float(getattr(module, values)(x, [0.0] * int(n) + [1.0]))

    return np.vectorize(value, otypes=[np.float64])


P = np.polynomial
REFERENCES = {
    "chebyshev_polynomial_t": numpy_polynomial(P.chebyshev, "chebval"),
    "hermite_polynomial_h": numpy_polynomial(P.hermite, "hermval"),
    "hermite_polynomial_he": numpy_polynomial(P.hermite_e, "hermeval"),
    "laguerre_polynomial_l": numpy_polynomial(P.laguerre, "lagval"),
    "legendre_polynomial_p": numpy_polynomial(P.legendre, "legval"),
}
BOTH = ("bessel_j0", "bessel_j1", "i0e", "i1e", "spherical_bessel_j0")
POSITIVE = (
    "bessel_y0",
    "bessel_y1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
)
POLYNOMIALS = [name for name in functions_of("special") if "_polynomial_" in name]

CHECKS = [
    *(OpCheck(name, getattr(special, name), BOTH_SIDES, dtypes=DTYPES) for name in BOTH),
    *(OpCheck(name, getattr(special, name), RIGHT, dtypes=DTYPES) for name in POSITIVE),
    OpCheck("i0", special.i0, unary(0.2, 3.0, signs=True), reference=np.i0),
    OpCheck("i1", special.i1, unary(0.2, 3.0, signs=True)),
    OpCheck("airy_ai", special.airy_ai, unary(0.2, 6.0, signs=True), dtypes=DTYPES),
    OpCheck("airy_ai_prime", airy_ai_prime, unary(0.2, 6.0, signs=True), dtypes=DTYPES),
    OpCheck("erfcx", special.erfcx, unary(0.1, 2.0, signs=True)),
    OpCheck("log_ndtr", special.log_ndtr, unary(0.1, 4.0, signs=True)),
    OpCheck("igamma", special.gammainc, with_fixed(0.5, 4.0, 0.4, 6.0), dtypes=DTYPES),
    OpCheck("igammac", special.gammaincc, with_fixed(0.5, 4.0, 0.4, 6.0), dtypes=DTYPES),
    OpCheck("igamma:large", lambda a, x: special.gammainc(a * 40, x * 40), with_fixed(0.9, 1.1, 0.9, 1.1), dtypes=()),
    OpCheck("zeta", special.zeta, with_fixed(1.5, 4.0, 0.4, 6.0), dtypes=DTYPES),
    OpCheck("zeta:negative", lambda q: special.zeta(3, q - 4.0), unary(0.2, 0.8), dtypes=()),
    *(
        OpCheck(name, getattr(special, name), with_degrees, dtypes=DTYPES, reference=REFERENCES.get(name))
        for name in POLYNOMIALS
    ),
]
