"""Copies of tensors: pickling, ``copy.copy`` and ``copy.deepcopy``.

A pickle holds the whole memory, and for each tensor where in it its elements are: so tensors that share memory still do so
afterwards. The cost, as in PyTorch: a pickled view takes all the memory of its base along.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeVar

import numpy as np

from ...base.errors import AutogradError
from ..array_memory import address, storage
from ..types import Array
from .state import TensorState

T = TypeVar("T", bound="Copyable")


class Copyable(TensorState):
    """The part of ``Tensor`` that makes copies of it."""

    __slots__ = ()

    def __copy__(self: T) -> T:
        result = self._leaf(self._array, self._requires_grad)
        result._counter = self._counter
        result.__dict__.update(self.__dict__)
        return result

    def __deepcopy__(self: T, memo: dict[int, Any]) -> T:
        if id(self) in memo:
            return memo[id(self)]
        if self._edge is not None:
            raise AutogradError("only leaves can be deep-copied; use clone(), or detach() first")
        memory, place = _described(self._array)
        result = self._leaf(_placed(deepcopy(memory, memo), place), self._requires_grad)
        memo[id(self)] = result
        result._grad = deepcopy(self.grad, memo)  # type: ignore[attr-defined]
        result.__dict__.update(deepcopy(self.__dict__, memo))
        return result

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        memory, place = _described(self._array)
        return rebuild_placed, (type(self), memory, place, self._requires_grad), self.__dict__ or None


def rebuild(kind: type[T], array: Array, requires_grad: bool) -> T:
    """Return a leaf made without its class's own ``__init__``: a function, so that pickles can name it.

    Args:
        kind: its class.
        array: its elements; not copied.
        requires_grad: whether operations on it are recorded.
    """
    return kind._leaf(array, requires_grad)


def rebuild_placed(kind: type[T], memory: Array, place: Any, requires_grad: bool) -> T:
    """Return the tensor that ``__reduce_ex__`` described.

    Args:
        kind: its class.
        memory: an array of all the memory.
        place: dtype, shape, offset in bytes, and strides; ``None`` for all of ``memory``.
        requires_grad: of the tensor.
    """
    return kind._leaf(_placed(memory, place), requires_grad)


def _described(array: Array) -> tuple[Array, Any]:
    """Return the memory of an array as an array without gaps, and the place of the elements in it."""
    memory = storage(array)
    if memory is array and memory.flags.forc:
        return memory, None
    if not (memory.flags.forc and memory.flags.writeable):
        return array.copy("K"), None  # memory of another object, such as a read-only buffer
    return memory, (array.dtype, array.shape, address(array) - address(memory), array.strides)


def _placed(memory: Array, place: Any) -> Array:
    if place is None:
        return memory
    dtype, shape, offset, strides = place
    array: Array = np.ndarray(shape, dtype, memory if memory.flags.c_contiguous else memory.T, offset, strides)
    return array
