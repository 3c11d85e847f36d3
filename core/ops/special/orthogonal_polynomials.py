"""Classical orthogonal polynomials, as operations: Chebyshev (four kinds, also shifted), Hermite, Laguerre and Legendre.

Each family is a three-term recurrence (M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 22.7; DLMF 18.9):
``p[k+1] = (A[k] x + B[k]) p[k] - C[k] p[k-1]``. Its derivative of order d has one more term, ``d A[k]`` times the derivative of
order d - 1 of ``p[k]``, so the same loop computes derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.errors import ArgumentValueError
from ...tensors import Tensor
from ...types import Array
from ..table.factories import Binary, binary, zero_gradient
from ..table.nodes import keep, record, records
from ..table.rows import ARRAYS, TENSORS, Row

_HIGHEST = 100_000
# (A[k], B[k], C[k])
Recurrence = Callable[[int], tuple[float, float, float]]


def values(name: str, order: int, x: Any, n: Any) -> Array:
    """Return the derivative of order ``order`` of the polynomials of degrees ``n`` at ``x``; 0 for negative degrees.

    Args:
        name: the family, a key of ``_FAMILIES``.
        order: the order of the derivative; 0 for the polynomial itself.
        x: an array or a number, real.
        n: the degrees, an array or a number, broadcast with ``x``; rounded towards 0.

    Raises:
        TypeError: an array is complex.
        ValueError: a degree is above 100000.
    """
    kind = x if isinstance(x, np.ndarray) else n
    if kind.dtype.kind == "c":
        raise TypeError(f"this operation takes real numbers only, and you gave {kind.dtype}")
    wide, degrees = np.broadcast_arrays(np.asarray(x, np.float64), np.trunc(np.asarray(n, np.float64)))
    highest = int(degrees.max(initial=-1, where=np.isfinite(degrees)))
    if highest > _HIGHEST:
        raise ArgumentValueError(
            f"polynomials are computed for degrees up to {_HIGHEST} (the time grows with the degree), and you gave {highest}"
        )
    result = np.zeros(wide.shape)
    for degree, value in zip(range(highest + 1), _degrees(*_FAMILIES[name], order, wide)):
        np.copyto(result, value, where=degrees == degree)
    return result.astype(kind.dtype)


def _degrees(first: tuple[float, float], recurrence: Recurrence, order: int, x: Array) -> Any:
    """Yield the derivatives of order ``order`` of the polynomials of degrees 0, 1, 2, ..."""
    slope, constant = first
    before = [np.ones_like(x), *[np.zeros_like(x)] * order]  # the derivatives of orders 0 to ``order``
    now = [slope * x + constant, np.full_like(x, slope), *[np.zeros_like(x)] * order][: order + 1]
    yield before[order]
    k = 0
    while True:
        yield now[order]
        k += 1
        a, b, c = recurrence(k)
        line = a * x + b
        after = [line * now[0] - c * before[0]]
        after += [line * now[d] + d * a * now[d - 1] - c * before[d] for d in range(1, order + 1)]
        before, now = now, after


def _chebyshev(k: int) -> tuple[float, float, float]:
    return 2.0, 0.0, 1.0


def _shifted(k: int) -> tuple[float, float, float]:
    return 4.0, -2.0, 1.0


# name: (the polynomial of degree 1, the recurrence)
_FAMILIES: dict[str, tuple[tuple[float, float], Recurrence]] = {
    "chebyshev_polynomial_t": ((1.0, 0.0), _chebyshev),
    "chebyshev_polynomial_u": ((2.0, 0.0), _chebyshev),
    "chebyshev_polynomial_v": ((2.0, -1.0), _chebyshev),
    "chebyshev_polynomial_w": ((2.0, 1.0), _chebyshev),
    "shifted_chebyshev_polynomial_t": ((2.0, -1.0), _shifted),
    "shifted_chebyshev_polynomial_u": ((4.0, -2.0), _shifted),
    "shifted_chebyshev_polynomial_v": ((4.0, -3.0), _shifted),
    "shifted_chebyshev_polynomial_w": ((4.0, -1.0), _shifted),
    "hermite_polynomial_h": ((2.0, 0.0), lambda k: (2.0, 0.0, 2.0 * k)),
    "hermite_polynomial_he": ((1.0, 0.0), lambda k: (1.0, 0.0, float(k))),
    "laguerre_polynomial_l": ((-1.0, 1.0), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "legendre_polynomial_p": ((1.0, 0.0), lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1))),
}


def _derivative(name: str, order: int, x: Any, n: Any) -> Tensor:
    degrees = n._array if isinstance(n, Tensor) else n
    result = Tensor(values(name, order, x._array, degrees))
    return record(_DERIVATIVE, result, (x,), (keep(x),), name, order, degrees) if records(x) else result


_DERIVATIVE = Row(
    "polynomial",
    lambda xp, g, x, name, order, n: xp.fit(g * xp.polynomial(name, order + 1, x, n), tuple(x.shape), g.dtype),
)
ARRAYS.polynomial, TENSORS.polynomial = values, _derivative


def _make(name: str, title: str, formula: str) -> Binary:
    return binary(
        name,
        lambda x, n: values(name, 0, x, n),
        lambda xp, g, x, n: g * xp.polynomial(name, 1, x, n),
        zero_gradient,  # degrees are integers
        saves=("ab", ""),
        floats=True,
        function=f"special.{name}",
        doc=f"""Return the {title} polynomial of degree ``n`` (``other``) at ``input``: {formula}.

    Args:
        input: real numbers of any shape.
        other: the degrees, rounded towards 0 and broadcast with ``input``; the result is 0 for negative ones.

    Raises:
        TypeError: a tensor is complex.
        ValueError: a degree is above 100000.
    """,
    )


_KINDS = {
    "t": ("first", "``cos(n * acos(input))``"),
    "u": ("second", "``sin((n + 1) * t) / sin(t)`` with ``t = acos(input)``"),
    "v": ("third", "``cos((n + 1/2) * t) / cos(t / 2)`` with ``t = acos(input)``"),
    "w": ("fourth", "``sin((n + 1/2) * t) / sin(t / 2)`` with ``t = acos(input)``"),
}


def _chebyshev_operation(kind: str) -> Binary:
    which, formula = _KINDS[kind]
    return _make(f"chebyshev_polynomial_{kind}", f"Chebyshev (of the {which} kind)", formula)


def _shifted_operation(kind: str) -> Binary:
    title = f"shifted Chebyshev (of the {_KINDS[kind][0]} kind)"
    return _make(
        f"shifted_chebyshev_polynomial_{kind}", title, "the Chebyshev polynomial of the same kind at ``2 * input - 1``"
    )


chebyshev_polynomial_t = _chebyshev_operation("t")
chebyshev_polynomial_u = _chebyshev_operation("u")
chebyshev_polynomial_v = _chebyshev_operation("v")
chebyshev_polynomial_w = _chebyshev_operation("w")
shifted_chebyshev_polynomial_t = _shifted_operation("t")
shifted_chebyshev_polynomial_u = _shifted_operation("u")
shifted_chebyshev_polynomial_v = _shifted_operation("v")
shifted_chebyshev_polynomial_w = _shifted_operation("w")
hermite_polynomial_h = _make(
    "hermite_polynomial_h", "(physicist's) Hermite", "orthogonal with the weight ``exp(-x**2)``"
)
hermite_polynomial_he = _make(
    "hermite_polynomial_he", "(probabilist's) Hermite", "orthogonal with the weight ``exp(-x**2 / 2)``"
)
laguerre_polynomial_l = _make("laguerre_polynomial_l", "Laguerre", "orthogonal on [0, inf) with the weight ``exp(-x)``")
legendre_polynomial_p = _make("legendre_polynomial_p", "Legendre", "orthogonal on [-1, 1]")
