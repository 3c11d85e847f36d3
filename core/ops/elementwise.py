"""Element-wise arithmetic and functions: each a NumPy function and its gradient rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled
from ..dtypes import to_float
from ..tensor import Tensor
from ..types import Array, Operand
from .factories import binary, coerce, comparison, unary
from .inplace import inplace
from .operation import operation
from .table import Row, Saved, keep, keep_result, record

__all__ = [
    "abs",
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "clamp",
    "cos",
    "div",
    "eq",
    "exp",
    "floor_divide",
    "ge",
    "gt",
    "isfinite",
    "isnan",
    "le",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "relu",
    "remainder",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "sub",
    "tanh",
]
# What of these are methods of tensors too.
METHODS = (
    "abs",
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "clamp",
    "cos",
    "div",
    "eq",
    "exp",
    "floor_divide",
    "ge",
    "gt",
    "isfinite",
    "isnan",
    "le",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "relu",
    "remainder",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "sub",
    "tanh",
)


def _divide(x: Any, y: Any) -> Any:
    if isinstance(x, np.ndarray):
        x = to_float(x)
    if isinstance(y, np.ndarray):
        y = to_float(y)
    return np.true_divide(x, y)


def _sigmoid(x: Array) -> Any:
    # By tanh: exp(-x) overflows for large negative x.
    return 0.5 * np.tanh(0.5 * x) + 0.5


def _power_rule_a(xp: Any, g: Any, a: Any, b: Any, out: Any) -> Any:
    # b * a**(b-1) is nan at a = b = 0 although a**0 is constant.
    if isinstance(b, (bool, int, float)):
        return g * 0 if b == 0 else g * (b * a ** (b - 1))
    return g * xp.where(b == 0, 0.0, b * a ** xp.where(b == 0, 1.0, b - 1))


def _power_rule_b(xp: Any, g: Any, a: Any, b: Any, out: Any) -> Any:
    # log(0) * 0**b is 0 for b > 0, as the limit is.
    if isinstance(a, (bool, int, float)):
        return g * out * float(np.log(a)) if a else g * 0
    return g * out * xp.log(xp.where(a == 0, 1.0, a))


def _won(xp: Any, g: Any, clearly: Any, equally: Any) -> Any:
    return g * (xp.cast(clearly, g.dtype) + xp.cast(equally, g.dtype) * 0.5)


add = binary("add", np.add, lambda xp, g: g, lambda xp, g: g, saves=("", ""), doc="``a + b``.")
sub = binary("sub", np.subtract, lambda xp, g: g, lambda xp, g: -g, saves=("", ""), doc="``a - b``.")
mul = binary(
    "mul", np.multiply, lambda xp, g, a, b: g * b, lambda xp, g, a, b: g * a, saves=("b", "a"), doc="``a * b``."
)
div = binary(
    "div",
    _divide,
    lambda xp, g, b, out: g / b,
    lambda xp, g, b, out: -g * out / b,
    saves=("b", "bo"),
    doc="``a / b``, in floating point.",
)
pow = binary("pow", np.power, _power_rule_a, _power_rule_b, saves=("ab", "ao"), doc="``a ** b``.")
maximum = binary(
    "maximum",
    np.maximum,
    lambda xp, g, a, b: _won(xp, g, a > b, a == b),
    lambda xp, g, a, b: _won(xp, g, b > a, a == b),
    saves=("ab", "ab"),
    doc="The larger of ``a`` and ``b``; equal ones share the gradient.",
)
minimum = binary(
    "minimum",
    np.minimum,
    lambda xp, g, a, b: _won(xp, g, a < b, a == b),
    lambda xp, g, a, b: _won(xp, g, b < a, a == b),
    saves=("ab", "ab"),
    doc="The smaller of ``a`` and ``b``; equal ones share the gradient.",
)

exp = unary("exp", np.exp, lambda xp, g, out: g * out, saves="o", doc="``e ** a``.")
log = unary("log", np.log, lambda xp, g, a: g / a, saves="a", doc="The natural logarithm.")
sqrt = unary("sqrt", np.sqrt, lambda xp, g, out: g / (2 * out), saves="o", doc="The square root.")
sin = unary("sin", np.sin, lambda xp, g, a: g * xp.cos(a), saves="a", doc="The sine of an angle in radians.")
cos = unary("cos", np.cos, lambda xp, g, a: -g * xp.sin(a), saves="a", doc="The cosine of an angle in radians.")
tanh = unary("tanh", np.tanh, lambda xp, g, out: g - g * out * out, saves="o", doc="The hyperbolic tangent.")
sigmoid = unary("sigmoid", _sigmoid, lambda xp, g, out: g * (out * (1 - out)), saves="o", doc="``1 / (1 + exp(-a))``.")

eq = comparison("eq", np.equal, "Where ``a == b``, as a boolean tensor.")
ne = comparison("ne", np.not_equal, "Where ``a != b``, as a boolean tensor.")
lt = comparison("lt", np.less, "Where ``a < b``, as a boolean tensor.")
le = comparison("le", np.less_equal, "Where ``a <= b``, as a boolean tensor.")
gt = comparison("gt", np.greater, "Where ``a > b``, as a boolean tensor.")
ge = comparison("ge", np.greater_equal, "Where ``a >= b``, as a boolean tensor.")


@operation
def neg(a: Tensor) -> Tensor:
    """``-a``.

    Raises:
        TypeError: ``a`` holds booleans; use ``~a``.
    """
    if a._array.dtype.kind == "b":
        raise TypeError("a boolean tensor cannot be negated with -; use ~")
    return _exact(_NEG, np.negative, a, ())


@operation
def abs(a: Tensor) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""
    return _exact(_ABS, np.absolute, a, (keep(a),))


@operation
def sign(a: Tensor) -> Tensor:
    """-1, 0 or 1; its gradient is 0."""
    return _exact(_SIGN, np.sign, a, ())


@operation
def relu(a: Tensor) -> Tensor:
    """``max(a, 0)``; its gradient at 0 is 0."""
    x = a._array
    result = Tensor(np.maximum(x, 0))
    if a._requires_grad and is_grad_enabled():
        record(_RELU, result, (a,), (keep_result(result),))
    return result


@operation
def clamp(a: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """``a``, but not below ``min`` nor above ``max``; the gradient flows where ``a`` is within the bounds.

    Raises:
        ValueError: both bounds are missing.
    """
    if min is None and max is None:
        raise ValueError("clamp() needs min, max, or both")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        low = a if min is None else maximum(a, min)
        return low if max is None else minimum(low, max)
    x = a._array if min is None else coerce("clamp", a._array, min)[0]
    x = x if max is None else coerce("clamp", x, max)[0]
    result = Tensor(np.clip(x, min, max))
    if a._requires_grad and is_grad_enabled():
        record(_CLAMP, result, (a,), (keep(a),), min, max)
    return result


@operation
def logical_not(a: Tensor) -> Tensor:
    """Where ``a`` is false (zero)."""
    return Tensor(np.logical_not(a._array))


@operation
def invert(a: Tensor) -> Tensor:
    """``~a``: not, for booleans; bitwise, for integers."""
    return Tensor(np.invert(a._array))


@operation
def isnan(a: Tensor) -> Tensor:
    """Where ``a`` is nan."""
    return Tensor(np.isnan(a._array))


@operation
def isfinite(a: Tensor) -> Tensor:
    """Where ``a`` is neither infinite nor nan."""
    return Tensor(np.isfinite(a._array))


def _exact(row: Row, function: Any, a: Tensor, saved: tuple[Saved, ...]) -> Tensor:
    result = Tensor(function(a._array))
    if a._requires_grad and is_grad_enabled():
        record(row, result, (a,), saved)
    return result


def _within(xp: Any, g: Any, a: Any, low: Any, high: Any) -> Any:
    if low is not None:
        g = g * (a >= low)
    return g if high is None else g * (a <= high)


_NEG = Row("neg", lambda xp, g: -g)
_ABS = Row("abs", lambda xp, g, a: g * xp.sign(a))
_SIGN = Row("sign", lambda xp, g: g * 0)
_RELU = Row("relu", lambda xp, g, out: g * (out > 0))
_CLAMP = Row("clamp", _within)
floor_divide = comparison("floor_divide", np.floor_divide, "``a // b``: rounded down. Not differentiable.")
remainder = comparison("remainder", np.remainder, "``a % b``, with the sign of ``b``. Not differentiable.")
logical_and = comparison("logical_and", np.logical_and, "Where both are true.")
logical_or = comparison("logical_or", np.logical_or, "Where at least one is true.")
bitwise_and = comparison("bitwise_and", np.bitwise_and, "``a & b``.")
bitwise_or = comparison("bitwise_or", np.bitwise_or, "``a | b``.")
bitwise_xor = comparison("bitwise_xor", np.bitwise_xor, "``a ^ b``.")

IN_PLACE = {
    "add_": inplace(add, np.add, keeps="never"),
    "sub_": inplace(sub, np.subtract, keeps="never"),
    "mul_": inplace(mul, np.multiply, keeps="other"),
    "div_": inplace(div, np.true_divide, keeps="never"),
    "pow_": inplace(pow, np.power),
    "clamp_": inplace(clamp),
    **{f"{each.__name__}_": inplace(each) for each in (abs, cos, log, sin)},
    **{f"{each.__name__}_": inplace(each, keeps="never") for each in (exp, neg, relu, sigmoid, sqrt, tanh)},
}
