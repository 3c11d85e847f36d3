"""The incomplete gamma functions and the Hurwitz zeta function, as operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ...errors import AutogradError
from ...types import Array
from ..table.factories import Binary, binary
from ..table.nodes import ARRAYS, TENSORS, Rule
from . import error_and_gamma, gamma_arrays
from .incomplete_gamma_arrays import lower_and_upper
from .zeta_arrays import zeta as zeta_arrays


def _in_double(function: Callable[[Array, Array], Array]) -> Callable[[Any, Any], Array]:
    """``function`` of two broadcast operands, of which one may be a number, computed in float64."""

    def computed(first: Any, second: Any) -> Array:
        dtype = (first if isinstance(first, np.ndarray) else second).dtype
        if dtype.kind == "c":
            raise TypeError(f"this is of real numbers only, and you gave {dtype}")
        wide = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
        return function(*wide).astype(dtype)

    return computed


def _of_tensors(which: int) -> Callable[[Any, Any], Array]:
    computed = _in_double(lambda a, x: lower_and_upper(a, x)[which])

    def checked(first: Any, second: Any) -> Array:
        if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
            raise TypeError("both arguments are tensors, and you gave a number; make it one, with tensor()")
        return computed(first, second)

    return checked


def _without(name: str, operand: str) -> Rule:
    def rule(xp: Any, g: Any, *saved: Any) -> NoReturn:
        raise AutogradError(f"{name}() has no gradient to {operand}; detach it, with {operand}.detach()")

    return rule


def _density(xp: Any, g: Any, a: Any, x: Any) -> Any:
    return g * xp.exp((a - 1) * xp.log(x) - x - xp.lgamma(a))


ARRAYS.lgamma, TENSORS.lgamma = gamma_arrays.lgamma, error_and_gamma.lgamma

_ARGUMENTS = """

    Args:
        input: the parameter ``a``, 0 or more.
        other: ``x``, 0 or more, broadcast with ``input``; nan comes out where one is negative, or both are 0 or infinite.

    Differentiable to ``other`` only, as in PyTorch.

    Raises:
        TypeError: complex numbers, or a number that is no tensor.
        AutogradError: in the backward pass, if ``input`` requires grad.
    """
igamma = binary(
    "igamma",
    _of_tensors(0),
    _without("igamma", "input"),
    _density,
    saves=("", "ab"),
    floats=True,
    doc="The regularized lower incomplete gamma function: the integral of ``t**(a-1) exp(-t) / gamma(a)`` from 0 to ``x``."
    + _ARGUMENTS,
    method=True,
    in_place=True,
    synonyms=("special.gammainc",),
)
igammac = binary(
    "igammac",
    _of_tensors(1),
    _without("igammac", "input"),
    lambda xp, g, a, x: -_density(xp, g, a, x),
    saves=("", "ab"),
    floats=True,
    doc="The regularized upper incomplete gamma function, ``1 - igamma``, precise where that is tiny." + _ARGUMENTS,
    method=True,
    in_place=True,
    synonyms=("special.gammaincc",),
)
zeta: Binary = binary(
    "zeta",
    _in_double(zeta_arrays),
    _without("zeta", "input"),
    lambda xp, g, s, q: -g * s * xp.zeta(s + 1, q),
    saves=("", "ab"),
    floats=True,
    doc="""The Hurwitz zeta function, the sum of ``(other + k)**-input`` over ``k >= 0``.

    Args:
        input: the exponent: inf comes out at 1, nan below.
        other: where the sum begins, broadcast with ``input``: inf comes out at 0, -1, ...; negative ones need whole exponents.

    Differentiable to ``other`` only, as in PyTorch.

    Raises:
        TypeError: complex numbers.
        AutogradError: in the backward pass, if ``input`` requires grad.
    """,
    function="special.zeta",
)
ARRAYS.zeta, TENSORS.zeta = _in_double(zeta_arrays), zeta
