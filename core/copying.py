"""Copies of tensors: pickling, ``copy.copy`` and ``copy.deepcopy``.

What goes into a pickle is the memory as a whole, and of each tensor where in it its elements are: so tensors that share
memory still do so afterwards. The price is PyTorch's too: a view takes all of what it is a view of along.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .errors import AutogradError
from .sharing import address, share, shared_segment, storage
from .types import Array

if TYPE_CHECKING:
    from .tensor import Tensor

T = TypeVar("T", bound="Copies")


class Copies:
    """The part of ``Tensor`` that makes copies of it, and lets other processes share it."""

    __slots__ = ()

    def share_memory_(self: T) -> T:
        """Move the elements into memory that other processes can share, unless they are there; returns this tensor.

        A process that gets the tensor through Python's multiprocessing (as an argument, or through a queue, pipe or pool)
        then sees each in-place change, and so does this one. What was sent is kept until it was received, but a sender
        that ends takes along what nobody has received. The memory is gone when its last holder is, however that ended.
        Assigning to ``data`` gives the tensor memory of its own again.

        Raises:
            AutogradError: the tensor is a view, or has views, which would stay behind; share before you make views.
            OSError: there is not enough memory, or the system is not Linux.
        """
        share(self)  # type: ignore[arg-type]
        return self

    def is_shared(self) -> bool:
        """Whether the elements are in shared memory, through ``share_memory_`` of this tensor or of one it is a view of."""
        return shared_segment(self._array) is not None  # type: ignore[attr-defined]

    def __copy__(self: T) -> T:
        tensor: Any = self
        result = rebuild(type(tensor), tensor._array, tensor._requires_grad)
        result._counter = tensor._counter
        result.__dict__.update(tensor.__dict__)
        return result  # type: ignore[return-value]

    def __deepcopy__(self: T, memo: dict[int, Any]) -> T:
        if id(self) in memo:
            return memo[id(self)]
        tensor: Any = self
        if tensor._edge is not None:
            raise AutogradError("only leaves can be deep-copied; use clone(), or detach() first")
        memory, place = _described(tensor._array)
        result = rebuild(type(tensor), _placed(deepcopy(memory, memo), place), tensor._requires_grad)
        memo[id(self)] = result
        result._grad = deepcopy(tensor.grad, memo)
        result.__dict__.update(deepcopy(tensor.__dict__, memo))
        return result  # type: ignore[return-value]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        tensor: Any = self
        memory, place = _described(tensor._array)
        return rebuild_placed, (type(self), memory, place, tensor._requires_grad), tensor.__dict__ or None


def rebuild(kind: type[Tensor], array: Array, requires_grad: bool) -> Tensor:
    """A leaf of class ``kind``, made without its class's own ``__init__``."""
    from .tensor import Tensor

    result = kind.__new__(kind)
    Tensor.__init__(result, array, requires_grad)
    return result


def rebuild_placed(kind: type[Tensor], memory: Array, place: Any, requires_grad: bool) -> Tensor:
    """The tensor that ``__reduce_ex__`` described."""
    return rebuild(kind, _placed(memory, place), requires_grad)


def _described(array: Array) -> tuple[Array, Any]:
    """The memory that an array is in, as an array without gaps, and where in it the elements are; ``None``: all of it."""
    memory = storage(array)
    if memory is array and memory.flags.forc:
        return memory, None
    if not (memory.flags.forc and memory.flags.writeable):
        return array.copy("K"), None  # memory of others, as NumPy has it from a buffer of theirs
    return memory, (array.dtype, array.shape, address(array) - address(memory), array.strides)


def _placed(memory: Array, place: Any) -> Array:
    if place is None:
        return memory
    dtype, shape, offset, strides = place
    array: Array = np.ndarray(shape, dtype, memory if memory.flags.c_contiguous else memory.T, offset, strides)
    return array
