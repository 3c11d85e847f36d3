"""Python's arithmetic operators, each from a NumPy function and its gradient rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...dtypes import result_type
from ...tensors import Operand, Tensor
from ...types import Array, Scalar
from ..table.array_functions import signs
from ..table.factories import Binary, binary, declared, same_dtype, zero_gradient
from ..table.operands import real_only
from ..table.operation import operation, published
from ..table.rows import ARRAYS, TENSORS
from .conversion import to

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..table.operation import Declaration


class Scaled(Protocol):
    """Signature of ``add`` and ``sub``, which take ``alpha``."""

    __name__: str

    def __call__(self, input: Operand, other: Operand, *, alpha: Scalar = 1, out: Tensor | None = None) -> Tensor: ...


def _power(x: Any, y: Any) -> Any:
    if type(y) in (int, float):  # costs a tenth of np.power
        if y == 2:
            return np.square(x)
        if y == 3:
            return x * x * x
        if y == -0.5:
            return 1 / np.sqrt(x)
        if float(y).is_integer() and type(x) is np.ndarray and x.dtype.kind == "f":
            # NumPy's power of negative numbers takes fifty times as long as that of positive ones.
            return np.copysign(np.power(np.abs(x), y), x) if y % 2 else np.power(np.abs(x), y)
    if isinstance(y, np.ndarray) and y.dtype.kind == "i" and y.size and y.min() < 0:
        return _whole_power(x, y)
    return np.power(x, y)


def _whole_power(x: Any, y: Array) -> Any:
    # An integer to a negative power is 0, except for 1 and -1; NumPy raises an error.
    base = np.asarray(x).astype(y.dtype)
    tiny = np.where(np.abs(base) == 1, np.power(base, np.abs(y)), 0)
    return np.where(y < 0, tiny, np.power(base, np.maximum(y, 0)))


def _power_rule_a(xp: Any, g: Any, a: Any, b: Any, out: Any) -> Any:
    # b * a**(b-1) is nan at a = b = 0 although a**0 is constant.
    if isinstance(b, (bool, int, float, complex)):
        return xp.zeros_like(g) if b == 0 else g * (b * xp.power(a, b - 1))
    return xp.where(b == 0, 0.0, g * (b * a ** xp.where(b == 0, 1.0, b - 1)))


def _power_rule_b(xp: Any, g: Any, a: Any, b: Any, out: Any) -> Any:
    # log(0) * 0**b is 0 for b >= 0, as the limit is.
    if isinstance(a, (bool, int, float, complex)):
        return g * out * np.log(a).item() if a else xp.where(_not_negative(b), 0.0, g * out * -np.inf)
    safe = xp.where((a == 0) & _not_negative(b), 1.0, a)
    return g * out * xp.log(safe)


def _not_negative(b: Any) -> Any:
    return b.real >= 0 if b.dtype.kind == "c" else b >= 0


def _floor_divide(x: Any, y: Any) -> Any:
    return integers_divide(np.floor_divide, x, y)


def _remainder(x: Any, y: Any) -> Any:
    return integers_divide(np.remainder, x, y)


def _divide_to_zero(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind in "iu":
        # Exact; the quotient of large integers in floating point is not.
        down = integers_divide(np.floor_divide, x, y)
        return down + ((down < 0) & (down * y != x))
    return np.trunc(np.true_divide(x, y))


def _scaled(plain: Binary, doc: str, **declaration: Unpack[Declaration]) -> Scaled:
    """Return the operation ``plain`` with the further parameter ``alpha``, which operators do not have."""
    name = plain.__name__

    def scaled(input: Operand, other: Operand, *, alpha: Scalar = 1, out: Tensor | None = None) -> Tensor:
        if alpha != 1:
            # In the dtype of the result: the dtype of ``other`` may be too small for the product.
            dense = isinstance(other, Tensor) and not other.is_sparse
            other = to(other, result_type(input, other)) * alpha if dense else other * alpha  # type: ignore[arg-type]
        return plain(input, other, out=out)

    return declared(scaled, name, doc, {**declaration, "operator_function": plain})


plus = binary("add", np.add, lambda xp, g: g, lambda xp, g: g, saves=("", ""), doc="Return ``input + other``.")
minus = binary("sub", np.subtract, lambda xp, g: g, lambda xp, g: -g, saves=("", ""), doc="Return ``input - other``.")
add = _scaled(
    plus, "Return ``input + alpha * other``.", method=True, in_place="overwrite", ufunc=np.add, operator="add"
)
sub = _scaled(
    minus,
    "Return ``input - alpha * other``.",
    method=True,
    in_place="overwrite",
    ufunc=np.subtract,
    operator="sub",
    synonyms=("subtract",),
)
mul = binary(
    "mul",
    np.multiply,
    lambda xp, g, a, b: g * b,
    lambda xp, g, a, b: g * a,
    saves=("b", "a"),
    doc="Return ``input * other``.",
    method=True,
    in_place=True,
    ufunc=np.multiply,
    operator="mul",
    synonyms=("multiply",),
)
quotient = binary(
    "div",
    np.true_divide,
    lambda xp, g, b, out: g / b,
    lambda xp, g, b, out: -g * out / b,
    saves=("b", "bo"),
    floats=True,
    doc="Return ``input / other``, in floating point.",
)
power = binary("pow", _power, _power_rule_a, _power_rule_b, saves=("ab", "abo"), doc="Return ``input ** other``.")
ARRAYS.power, TENSORS.power = _power, power


@operation(method=True, in_place=True, operator="pow", operator_function=power)
def pow(input: Operand, exponent: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return ``input ** exponent``.

    Args:
        input: a tensor of any shape, or a number.
        exponent: a tensor or number, broadcast.
        out: where the result is written.
    """
    return power(input, exponent)


floor_divide = binary(
    "floor_divide",
    _floor_divide,
    zero_gradient,
    zero_gradient,
    saves=("", ""),
    doc="Return ``input // other``, rounded down; its gradient is 0. Raises ``ZeroDivisionError`` for integers divided by 0.",
    operator="floordiv",
    method=True,
    in_place=True,
)
_divided_to_zero = binary(
    "div",
    _divide_to_zero,
    zero_gradient,
    zero_gradient,
    saves=("", ""),
    doc="Return ``input / other``, rounded towards 0.",
)
remainder = binary(
    "remainder",
    _remainder,
    lambda xp, g, a, b: g,
    lambda xp, g, a, b: -g * xp.floor(a / b),
    saves=("", "ab"),
    doc="Return ``input % other``, with the sign of ``other``. Raises ``ZeroDivisionError`` for integers divided by 0.",
    operator="mod",
    method=True,
    in_place=True,
)


def _negative(x: Array) -> Any:
    if x.dtype.kind == "b":
        raise TypeError("a boolean tensor cannot be negated with -; use ~")
    return np.negative(x)


def _real_sign(x: Array) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("complex numbers have no sign; use sgn()")
    return signs(x)


neg = same_dtype(
    "neg",
    _negative,
    lambda xp, g: -g,
    doc="Return ``-input``; raises ``TypeError`` for booleans.",
    operator="neg",
    method=True,
    in_place=True,
    synonyms=("negative",),
)
abs = same_dtype(
    "abs",
    np.absolute,
    lambda xp, g, a: g * xp.sign(a),
    saves="a",
    doc="Return the absolute value, also of complex numbers; the gradient at 0 is 0.",
    operator="abs",
    method=True,
    in_place=True,
    synonyms=("absolute",),
)
sign = same_dtype(
    "sign",
    _real_sign,
    None,
    doc="Return the sign of each element, -1, 0 or 1; its gradient is 0.",
    method=True,
    in_place=True,
)
relu = same_dtype(
    "relu",
    real_only(lambda x: np.clip(x, 0, np.inf) if x.dtype.kind == "f" else np.maximum(x, 0)),  # twice as fast
    lambda xp, g, out: xp.chosen(out != 0, g),  # nan passes the gradient, as in PyTorch
    saves="o",
    doc="Return ``max(input, 0)``; its gradient at 0 is 0.",
    method=True,
    in_place=True,
)


@operation(
    method=True,
    in_place="overwrite",
    ufunc=np.true_divide,
    operator="truediv",
    operator_function=quotient,
    synonyms=("divide", "true_divide"),
)
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Return ``input / other``, in floating point unless it is rounded; the gradient of a rounded quotient is 0.

    Args:
        input: a tensor of any shape, or a number.
        other: a tensor or number, broadcast with ``input``.
        rounding_mode: "floor" to round down, "trunc" to round towards 0, ``None`` not to round.
        out: where the result is written.

    Raises:
        ValueError: ``rounding_mode`` is none of these.
        ZeroDivisionError: integers divided by 0 with a rounding mode.
    """
    if rounding_mode is None:
        return quotient(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        return _divided_to_zero(input, other)
    raise ValueError(f'rounding_mode must be "floor", "trunc" or None, and you gave {rounding_mode!r}')


@published(function=False, method="__rdiv__")
def rdiv(input: Tensor, other: Operand) -> Tensor:
    """Return ``other / input``: the name that the reflected operator had in Python 2, which PyTorch keeps."""
    return quotient(other, input)


def integers_divide(function: Any, x: Any, y: Any) -> Any:
    """Return ``function(x, y)``, where ``function`` divides.

    Raises:
        ZeroDivisionError: integers divided by 0.
    """
    if np.result_type(x, y).kind in "biu" and not np.all(y):
        raise ZeroDivisionError("integers cannot be divided by 0; convert to floating point for inf and nan")
    return function(x, y)
