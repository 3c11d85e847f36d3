"""Hangs the operations on ``Tensor``: methods, operators, properties. ``signatures.py`` says the same to type checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import arithmetic, elementwise, indexing, logic, matrix_products
from .families import FAMILIES


def _reflected(operation: Callable[..., Tensor]) -> Callable[[Any, Any], Tensor]:
    return lambda self, other: operation(other, self)


_IN_PLACE = elementwise.IN_PLACE
_REFLECTED: dict[str, Callable[..., Tensor]] = {
    "add": elementwise.plus,
    "sub": elementwise.minus,
    "mul": elementwise.mul,
    "truediv": elementwise.quotient,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.power,
    "matmul": matrix_products.matmul,
    "and": logic.bitwise_and,
    "or": logic.bitwise_or,
    "xor": logic.bitwise_xor,
    "lshift": logic.bitwise_left_shift,
    "rshift": logic.bitwise_right_shift,
}
_OPERATORS: dict[str, Any] = {
    **{f"__{name}__": operation for name, operation in _REFLECTED.items()},
    **{f"__r{name}__": _reflected(operation) for name, operation in _REFLECTED.items()},
    "__iadd__": _IN_PLACE["add_"],
    "__isub__": _IN_PLACE["sub_"],
    "__imul__": _IN_PLACE["mul_"],
    "__itruediv__": _IN_PLACE["div_"],
    "__ipow__": _IN_PLACE["pow_"],
    "__ifloordiv__": _IN_PLACE["floor_divide_"],
    "__imod__": _IN_PLACE["remainder_"],
    "__iand__": logic.IN_PLACE["bitwise_and_"],
    "__ior__": logic.IN_PLACE["bitwise_or_"],
    "__ixor__": logic.IN_PLACE["bitwise_xor_"],
    "__neg__": elementwise.neg,
    "__pos__": arithmetic.positive,
    "__abs__": elementwise.abs,
    "__invert__": elementwise.invert,
    "__eq__": elementwise.eq,
    "__ne__": elementwise.ne,
    "__lt__": elementwise.lt,
    "__le__": elementwise.le,
    "__gt__": elementwise.gt,
    "__ge__": elementwise.ge,
    "__getitem__": indexing.subscript,
    "__setitem__": indexing.setitem,
}

for _family in FAMILIES:
    for _name in getattr(_family, "METHODS", ()):
        setattr(Tensor, _name, getattr(_family, _name))
    for _name, _function in getattr(_family, "IN_PLACE", {}).items():
        setattr(Tensor, _name, _function)
    for _name, _function in getattr(_family, "PROPERTIES", {}).items():
        setattr(Tensor, _name, property(_function))
for _name, _function in _OPERATORS.items():
    setattr(Tensor, _name, _function)
