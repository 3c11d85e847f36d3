"""Overwriting a tensor with given, equal or random values."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import is_grad_enabled
from ..random import Generator
from ..random_tensors import floats
from ..tensor import Tensor
from ..types import Array
from . import casting, expanding
from .indexing import setitem
from .inplace import inplace
from .views import changed, check_writable

__all__: list[str] = []
METHODS = ("copy_", "fill_", "normal_", "uniform_", "zero_")


def copy_(a: Tensor, source: Tensor) -> Tensor:
    """Copy ``source`` into this tensor, broadcast and converted; recorded."""
    return _copy(a, expanding.broadcast_to(casting.to(source, a.dtype), a.shape))


def zero_(a: Tensor) -> Tensor:
    """Fill with zeros."""
    return fill_(a, 0)


def fill_(a: Tensor, value: Any) -> Tensor:
    """Fill with ``value``, a number or a 0-d tensor."""
    setitem(a, Ellipsis, value)
    return a


def uniform_(a: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers uniform in [``low``, ``high``)."""
    return _refill(a, floats("random", a.shape, generator, a.dtype) * (high - low) + low)


def normal_(a: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers of that mean and standard deviation."""
    return _refill(a, floats("standard_normal", a.shape, generator, a.dtype) * std + mean)


def _refill(a: Tensor, values: Array) -> Tensor:
    if a._requires_grad and is_grad_enabled():
        check_writable(a)
    a._array[...] = values
    return changed(a)


def _assigned(a: Tensor, source: Tensor) -> Tensor:
    # What copy_ computes: the source's value and history, none of the former one's.
    return source


_copy = inplace(_assigned, keeps="never")
