"""Operations: the error function, the gamma function, functions derived from them, and the zeta function."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ....base.errors import AutogradError
from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import get_default_dtype, is_inexact, to_float
from ...tensors import Tensor
from ...types import Array
from ..elementwise.conversion import to
from ..table.factories import Binary, binary, unary
from ..table.nodes import keep, record
from ..table.operation import operation
from ..table.rows import ARRAYS, TENSORS, Row, Rule
from . import error_and_gamma, error_arrays, gamma_arrays
from .gamma_arrays import zeta as zeta_arrays
from .incomplete_gamma_arrays import lower_and_upper


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with a check that its last argument is real."""

    @functools.wraps(function)
    def checked(*args: Any) -> Any:
        if args[-1].dtype.kind == "c":
            raise TypeError(f"{function.__name__}() takes real numbers only, and you gave {args[-1].dtype}")
        return function(*args)

    return checked


def _gaussian(xp: Any, g: Any, a: Any) -> Any:
    return g * (2 / np.pi**0.5 * xp.exp(-a * a))


erf = unary(
    "erf",
    _real(error_arrays.erf),
    _gaussian,
    saves="a",
    doc="Return the error function: ``2/sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``input`` (DLMF 7.2.1).",
    method=True,
    in_place=True,
    synonyms=("special.erf",),
)
erfc = unary(
    "erfc",
    _real(error_arrays.erfc),
    lambda xp, g, a: -_gaussian(xp, g, a),
    saves="a",
    doc="Return the complementary error function ``1 - erf(input)``, accurate also where it is close to 0 (DLMF 7.2.2).",
    method=True,
    in_place=True,
    synonyms=("special.erfc",),
)
erfinv = unary(
    "erfinv",
    _real(error_arrays.erfinv),
    lambda xp, g, out: g * (np.pi**0.5 / 2 * xp.exp(out * out)),
    saves="o",
    doc="Return the inverse of ``erf``: -inf at -1, inf at 1, nan outside [-1, 1].",
    method=True,
    in_place=True,
    synonyms=("special.erfinv",),
)
erfcx = unary(
    "erfcx",
    _real(error_arrays.erfcx),
    lambda xp, g, a: g * (2 * a * xp.erfcx(a) - 2 / np.pi**0.5),
    saves="a",
    doc="Return the scaled complementary error function ``exp(input**2) * erfc(input)``, without underflow.",
    function="special.erfcx",
)
log_ndtr = unary(
    "log_ndtr",
    _real(error_arrays.log_ndtr),
    lambda xp, g, a: g * ((2 / np.pi) ** 0.5 / xp.erfcx(a * -(0.5**0.5))),
    saves="a",
    doc="Return ``log(ndtr(input))``, accurate also for negative numbers.",
    function="special.log_ndtr",
)
ARRAYS.erfcx, TENSORS.erfcx = error_arrays.erfcx, erfcx
lgamma = unary(
    "lgamma",
    _real(gamma_arrays.lgamma),
    lambda xp, g, a: g * xp.digamma(a),
    saves="a",
    doc="Return the logarithm of the absolute value of the gamma function (DLMF 5.2): inf at 0 and the negative integers.",
    method=True,
    in_place=True,
    synonyms=("special.gammaln",),
)
digamma = unary(
    "digamma",
    _real(gamma_arrays.digamma),
    lambda xp, g, a: g * xp.polygamma(1, a),
    saves="a",
    doc="Return the derivative of ``lgamma`` (DLMF 5.2.2): nan at the negative integers.",
    method=True,
    in_place=True,
    synonyms=("special.digamma", "special.psi"),
)

_POLYGAMMA = Row("polygamma", lambda xp, g, a, n: g * xp.polygamma(n + 1, a))


@operation(method=True, in_place=True, synonyms=("special.polygamma",))
def polygamma(n: int | Tensor, input: Tensor | int, *, out: Tensor | None = None) -> Tensor:
    """Return the derivative of order ``n`` of ``digamma`` (DLMF 5.15); as a method, ``input.polygamma(n)``.

    Args:
        n: the order, 0 or more.
        input: any shape, real.
        out: where the result is written.

    Raises:
        ValueError: ``n`` is negative.
    """
    if isinstance(n, Tensor):  # called as a method, with the tensor first
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
    """Return the logarithm of the multivariate gamma function of dimension ``p`` (DLMF 35.3.4).

    It is ``p (p - 1) / 4 * log(pi) + sum(lgamma(input - j / 2) for j in range(p))``, defined for ``input > (p - 1) / 2``.

    Args:
        input: any shape, real.
        p: the dimension, 1 or more.
        out: where the result is written.

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
    """Return the standard normal distribution function: the probability of a number below ``input``."""
    return erfc(input * -math.sqrt(0.5)) * 0.5


@operation(function="special.ndtri")
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of ``ndtr``: -inf at 0, inf at 1, nan outside [0, 1]."""
    if input.dtype.kind == "c":
        raise TypeError(f"special.ndtri() takes real numbers only, and you gave {input.dtype}")
    dtype = input.dtype if is_inexact(input.dtype) else get_default_dtype()
    # In float64, because 2p - 1 has few digits of a small p.
    return to(erfinv(to(input, np.float64) * 2 - 1) * math.sqrt(2), dtype)


def _in_double(function: Callable[[Array, Array], Array]) -> Callable[[Any, Any], Array]:
    """Return ``function`` computed in float64, for two operands that are broadcast; one of them may be a number."""

    def computed(first: Any, second: Any) -> Array:
        dtype = (first if isinstance(first, np.ndarray) else second).dtype
        if dtype.kind == "c":
            raise TypeError(f"this operation takes real numbers only, and you gave {dtype}")
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


def _no_gradient(name: str, operand: str) -> Rule:
    def rule(xp: Any, g: Any, *saved: Any) -> NoReturn:
        raise AutogradError(f"{name}() has no gradient with respect to {operand}; detach it, with {operand}.detach()")

    return rule


def _density(xp: Any, g: Any, a: Any, x: Any) -> Any:
    return g * xp.exp((a - 1) * xp.log(x) - x - xp.lgamma(a))


ARRAYS.lgamma, TENSORS.lgamma = gamma_arrays.lgamma, error_and_gamma.lgamma

_ARGUMENTS = """

    Args:
        input: the parameter ``a``, 0 or more.
        other: ``x``, 0 or more, broadcast with ``input``. The result is nan where one is negative, or both are 0 or infinite.

    Differentiable with respect to ``other`` only, as in PyTorch.

    Raises:
        TypeError: a tensor is complex, or an argument is not a tensor.
        AutogradError: in the backward pass, if ``input`` requires grad.
    """
igamma = binary(
    "igamma",
    _of_tensors(0),
    _no_gradient("igamma", "input"),
    _density,
    saves=("", "ab"),
    floats=True,
    doc="Return the regularized lower incomplete gamma function, the integral of ``t**(a-1) exp(-t) / gamma(a)`` to ``x``."
    + _ARGUMENTS,
    method=True,
    in_place=True,
    synonyms=("special.gammainc",),
    numbers="neither",
)
igammac = binary(
    "igammac",
    _of_tensors(1),
    _no_gradient("igammac", "input"),
    lambda xp, g, a, x: -_density(xp, g, a, x),
    saves=("", "ab"),
    floats=True,
    doc="Return the regularized upper incomplete gamma function ``1 - igamma``, accurate also where it is close to 0."
    + _ARGUMENTS,
    method=True,
    in_place=True,
    synonyms=("special.gammaincc",),
    numbers="neither",
)
zeta: Binary = binary(
    "zeta",
    _in_double(zeta_arrays),
    _no_gradient("zeta", "input"),
    lambda xp, g, s, q: -g * s * xp.zeta(s + 1, q),
    saves=("", "ab"),
    floats=True,
    doc="""Return the Hurwitz zeta function, the sum of ``(other + k)**-input`` over ``k >= 0`` (DLMF 25.11.1).

    Args:
        input: the exponent; the result is inf for 1 and nan below 1.
        other: where the sum begins, broadcast with ``input``: inf comes out at 0, -1, ...; negative ones need whole exponents.

    Differentiable with respect to ``other`` only, as in PyTorch.

    Raises:
        TypeError: a tensor is complex.
        AutogradError: in the backward pass, if ``input`` requires grad.
    """,
    function="special.zeta",
)
ARRAYS.zeta, TENSORS.zeta = _in_double(zeta_arrays), zeta
