"""Hangs the operations on ``Tensor``: methods, operators, properties. ``signatures.py`` says the same to type checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensors import Tensor
from .elementwise import arithmetic, basic, bitwise
from .families import FAMILIES
from .index import indexing
from .linalg import matrix_products


def _reflected(operation: Callable[..., Tensor]) -> Callable[[Any, Any], Tensor]:
    return lambda self, other: operation(other, self)


_IN_PLACE = basic.IN_PLACE
_REFLECTED: dict[str, Callable[..., Tensor]] = {
    "add": basic.plus,
    "sub": basic.minus,
    "mul": basic.mul,
    "truediv": basic.quotient,
    "floordiv": basic.floor_divide,
    "mod": basic.remainder,
    "pow": basic.power,
    "matmul": matrix_products.matmul,
    "and": bitwise.bitwise_and,
    "or": bitwise.bitwise_or,
    "xor": bitwise.bitwise_xor,
    "lshift": bitwise.bitwise_left_shift,
    "rshift": bitwise.bitwise_right_shift,
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
    "__iand__": bitwise.IN_PLACE["bitwise_and_"],
    "__ior__": bitwise.IN_PLACE["bitwise_or_"],
    "__ixor__": bitwise.IN_PLACE["bitwise_xor_"],
    "__neg__": basic.neg,
    "__pos__": arithmetic.positive,
    "__abs__": basic.abs,
    "__invert__": basic.invert,
    "__eq__": basic.eq,
    "__ne__": basic.ne,
    "__lt__": basic.lt,
    "__le__": basic.le,
    "__gt__": basic.gt,
    "__ge__": basic.ge,
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
