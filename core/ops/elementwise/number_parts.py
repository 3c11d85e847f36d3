"""What numbers are made of: common divisors of whole ones, mantissa and exponent of the others, and their neighbours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import is_inexact
from ...tensors import Operand, Tensor
from ..table.factories import binary, comparison
from ..table.nodes import Row, record
from ..table.operation import operation
from . import basic


class MantissaExponent(NamedTuple):
    """What ``frexp`` returns."""

    mantissa: Tensor
    exponent: Tensor


def _nextafter(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind != "f":
        raise TypeError("nextafter() takes floating-point numbers")
    return np.nextafter(x, y)


gcd = comparison("gcd", np.gcd, "The greatest common divisor of integers.", method=True, in_place=True)
lcm = comparison("lcm", np.lcm, "The least common multiple of integers.", method=True, in_place=True)
nextafter = binary(
    "nextafter",
    _nextafter,
    lambda xp, g, a, b: xp.chosen(a != b, g),
    lambda xp, g, a, b: xp.zeros_like(g),
    saves=("ab", ""),
    doc="The next number of the dtype from ``input`` towards ``other``: a gradient of 1 where they differ.",
    method=True,
    in_place=True,
)
_FREXP = Row("frexp", lambda xp, g, scale: g * scale)


@operation(method=True)
def frexp(input: Tensor) -> MantissaExponent:
    """``input = mantissa * 2 ** exponent`` with a mantissa from 0.5 to below 1 in size, and an ``int32`` exponent.

    Raises:
        TypeError: not of floating point.
    """
    if not is_inexact(input.dtype) or input.dtype.kind == "c":
        raise TypeError(f"frexp() takes floating-point numbers, not {input.dtype}")
    mantissa, exponent = np.frexp(input._array)
    result = Tensor(mantissa)
    if input._requires_grad and is_grad_enabled():
        record(_FREXP, result, (input,), (), np.ldexp(np.ones_like(mantissa), -exponent))
    return MantissaExponent(result, Tensor(np.asarray(exponent, np.int32)))


@operation(method=True, in_place=True)
def ldexp(input: Tensor, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input * 2 ** other``."""
    return basic.mul(input, basic.pow(2.0, other))
