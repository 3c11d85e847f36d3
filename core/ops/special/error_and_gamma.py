"""The error function, the gamma function's logarithm and its derivatives, as operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import to_float
from ...tensors import Tensor
from ..table.factories import unary
from ..table.nodes import ARRAYS, TENSORS, Row, keep, record
from ..table.operation import operation
from . import error_arrays, gamma_arrays


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which would take complex numbers for their real parts."""

    @functools.wraps(function)
    def checked(*args: Any) -> Any:
        if args[-1].dtype.kind == "c":
            raise TypeError(f"{function.__name__}() is of real numbers only, and you gave {args[-1].dtype}")
        return function(*args)

    return checked


def _bell(xp: Any, g: Any, a: Any) -> Any:
    return g * (2 / np.pi**0.5 * xp.exp(-a * a))


erf = unary(
    "erf",
    _real(error_arrays.erf),
    _bell,
    saves="a",
    doc="``2/sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0.",
    method=True,
    in_place=True,
    synonyms=("special.erf",),
)
erfc = unary(
    "erfc",
    _real(error_arrays.erfc),
    lambda xp, g, a: -_bell(xp, g, a),
    saves="a",
    doc="``1 - erf(input)``, precise where that is tiny.",
    method=True,
    in_place=True,
    synonyms=("special.erfc",),
)
erfinv = unary(
    "erfinv",
    _real(error_arrays.erfinv),
    lambda xp, g, out: g * (np.pi**0.5 / 2 * xp.exp(out * out)),
    saves="o",
    doc="The inverse of ``erf``: infinite at -1 and 1, nan beyond.",
    method=True,
    in_place=True,
    synonyms=("special.erfinv",),
)
erfcx = unary(
    "erfcx",
    _real(error_arrays.erfcx),
    lambda xp, g, a: g * (2 * a * xp.erfcx(a) - 2 / np.pi**0.5),
    saves="a",
    doc="``exp(input**2) * erfc(input)``, which does not vanish to the right.",
    function="special.erfcx",
)
log_ndtr = unary(
    "log_ndtr",
    _real(error_arrays.log_ndtr),
    lambda xp, g, a: g * ((2 / np.pi) ** 0.5 / xp.erfcx(a * -(0.5**0.5))),
    saves="a",
    doc="The logarithm of the share of a standard normal distribution below ``input``, precise where that is tiny.",
    function="special.log_ndtr",
)
ARRAYS.erfcx, TENSORS.erfcx = error_arrays.erfcx, erfcx
lgamma = unary(
    "lgamma",
    _real(gamma_arrays.lgamma),
    lambda xp, g, a: g * xp.digamma(a),
    saves="a",
    doc="The logarithm of the absolute value of the gamma function; infinite at 0 and the negative integers.",
    method=True,
    in_place=True,
    synonyms=("special.gammaln",),
)
digamma = unary(
    "digamma",
    _real(gamma_arrays.digamma),
    lambda xp, g, a: g * xp.polygamma(1, a),
    saves="a",
    doc="The derivative of ``lgamma``; nan at the negative integers.",
    method=True,
    in_place=True,
    synonyms=("special.digamma", "special.psi"),
)

_POLYGAMMA = Row("polygamma", lambda xp, g, a, n: g * xp.polygamma(n + 1, a))


@operation(method=True, in_place=True, synonyms=("special.polygamma",))
def polygamma(n: int | Tensor, input: Tensor | int, *, out: Tensor | None = None) -> Tensor:
    """The derivative of order ``n`` of ``digamma``; as a method, ``input.polygamma(n)``.

    Raises:
        ValueError: ``n`` is negative.
    """
    if isinstance(n, Tensor):  # the method's order
        n, input = input, n
    assert isinstance(n, int) and isinstance(input, Tensor)
    if n < 0:
        raise ValueError(f"polygamma() takes an order of 0 or more, and you gave {n}")
    x = to_float(input._array)
    result = Tensor(_real(gamma_arrays.polygamma)(n, x))
    if input._requires_grad and is_grad_enabled():
        record(_POLYGAMMA, result, (input,), (keep(input),), n)
    return result


@operation(method=True, in_place=True, synonyms=("special.multigammaln",))
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension ``p``; it is there above ``(p - 1) / 2``.

    Raises:
        ValueError: ``p`` is below 1.
    """
    if p < 1:
        raise ValueError(f"mvlgamma() takes a dimension from 1, and you gave {p}")
    result = lgamma(input) + p * (p - 1) / 4 * np.log(np.pi)
    for number in range(1, p):
        result = result + lgamma(input - number / 2)
    return result


@operation(function="special.ndtr")
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The share of a standard normal distribution that is below ``input``."""
    return erfc(input * -math.sqrt(0.5)) * 0.5


@operation(function="special.ndtri")
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of ``ndtr``: infinite at 0 and 1, nan beyond."""
    return erfinv(input * 2 - 1) * math.sqrt(2)
