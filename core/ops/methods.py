"""Hangs the operations on ``Tensor``; ``signatures.py`` declares the same names for type checkers (a test compares)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..random_tensors import normal_, uniform_
from ..tensor import Tensor
from . import casting, elementwise, indexing, joining, linalg, reductions, shaping, softmax
from .inplace import inplace


def _reflected(operation: Callable[..., Tensor]) -> Callable[[Any, Any], Tensor]:
    return lambda self, other: operation(other, self)


def copy_(self: Tensor, source: Tensor) -> Tensor:
    """Copy ``source`` into this tensor, broadcast and converted; recorded."""
    return _copy(self, shaping.broadcast_to(casting.to(source, self.dtype), self.shape))


def zero_(self: Tensor) -> Tensor:
    """Fill with zeros."""
    return fill_(self, 0)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Fill with ``value``, a number or a 0-d tensor."""
    indexing.setitem(self, Ellipsis, value)
    return self


def _assigned(self: Tensor, source: Tensor) -> Tensor:
    # What copy_ computes: the source's value and history, none of the former one's.
    return source


_copy = inplace(_assigned, keeps="never")
_clamp_ = inplace(elementwise.clamp)

_METHODS: dict[str, Any] = {
    name: getattr(module, name)
    for module, names in (
        (
            elementwise,
            "abs add bitwise_and bitwise_or bitwise_xor clamp cos div eq exp floor_divide ge gt isfinite isnan le log "
            "logical_and logical_not logical_or lt maximum minimum mul ne neg pow relu remainder sigmoid sign sin sqrt "
            "sub tanh",
        ),
        (reductions, "all amax amin any argmax argmin max mean min std sum var"),
        (linalg, "addmm bmm dot matmul mm mv outer"),
        (
            shaping,
            "broadcast_to contiguous expand expand_as flatten permute reshape reshape_as squeeze t transpose unsqueeze "
            "view view_as",
        ),
        (casting, "bool byte char clone double float half int long short to type_as"),
        (indexing, "gather index_select masked_fill masked_select"),
        (joining, "chunk split unbind"),
        (softmax, "log_softmax logsumexp softmax"),
    )
    for name in names.split()
}

_IN_PLACE: dict[str, Any] = {
    "add_": inplace(elementwise.add, np.add, keeps="never"),
    "sub_": inplace(elementwise.sub, np.subtract, keeps="never"),
    "mul_": inplace(elementwise.mul, np.multiply, keeps="other"),
    "div_": inplace(elementwise.div, np.true_divide, keeps="never"),
    "pow_": inplace(elementwise.pow, np.power),
    "clamp_": _clamp_,
    "masked_fill_": inplace(indexing.masked_fill),
    **{
        f"{name}_": inplace(getattr(elementwise, name), keeps=keeps)
        for keeps, names in (("always", "abs cos log sin"), ("never", "exp neg relu sigmoid sqrt tanh"))
        for name in names.split()
    },
    "copy_": copy_,
    "fill_": fill_,
    "normal_": normal_,
    "uniform_": uniform_,
    "zero_": zero_,
}

_OPERATORS: dict[str, Any] = {
    "__add__": elementwise.add,
    "__radd__": _reflected(elementwise.add),
    "__iadd__": _IN_PLACE["add_"],
    "__sub__": elementwise.sub,
    "__rsub__": _reflected(elementwise.sub),
    "__isub__": _IN_PLACE["sub_"],
    "__mul__": elementwise.mul,
    "__rmul__": _reflected(elementwise.mul),
    "__imul__": _IN_PLACE["mul_"],
    "__truediv__": elementwise.div,
    "__rtruediv__": _reflected(elementwise.div),
    "__itruediv__": _IN_PLACE["div_"],
    "__floordiv__": elementwise.floor_divide,
    "__rfloordiv__": _reflected(elementwise.floor_divide),
    "__mod__": elementwise.remainder,
    "__rmod__": _reflected(elementwise.remainder),
    "__pow__": elementwise.pow,
    "__rpow__": _reflected(elementwise.pow),
    "__ipow__": _IN_PLACE["pow_"],
    "__matmul__": linalg.matmul,
    "__rmatmul__": _reflected(linalg.matmul),
    "__neg__": elementwise.neg,
    "__abs__": elementwise.abs,
    "__invert__": elementwise.invert,
    "__and__": elementwise.bitwise_and,
    "__rand__": _reflected(elementwise.bitwise_and),
    "__or__": elementwise.bitwise_or,
    "__ror__": _reflected(elementwise.bitwise_or),
    "__xor__": elementwise.bitwise_xor,
    "__rxor__": _reflected(elementwise.bitwise_xor),
    "__eq__": elementwise.eq,
    "__ne__": elementwise.ne,
    "__lt__": elementwise.lt,
    "__le__": elementwise.le,
    "__gt__": elementwise.gt,
    "__ge__": elementwise.ge,
    "__getitem__": indexing.getitem,
    "__setitem__": indexing.setitem,
}

_PROPERTIES = {"T": property(shaping.reversed_dims), "mT": property(shaping.matrix_transpose)}

for _name, _function in {**_METHODS, **_IN_PLACE, **_OPERATORS, **_PROPERTIES}.items():
    setattr(Tensor, _name, _function)
