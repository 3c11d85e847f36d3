"""Packing of objects for a loader and its workers: a pickle and the elements of its arrays, in one memory.

The memory is a shared segment or, if it is small, bytes of a message. The arrays of an unpacked object lie in that memory.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from ..base.errors import AutogradError
from ..core import Tensor
from ..core.extend import Array, rebuild

_ALIGNMENT = 64


class BatchPickler(pickle.Pickler):
    """Pickler that takes the elements of a tensor, not all of the memory that it is a view of."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how to rebuild a tensor."""
        if not isinstance(obj, Tensor):
            return NotImplemented
        if not obj.is_leaf:
            raise AutogradError(
                "a worker process cannot send a result of recorded operations; use detach() in the dataset or collate_fn"
            )
        array = np.ascontiguousarray(obj._array).reshape(obj.shape)  # ascontiguousarray makes 0-d arrays 1-d
        return rebuild, (type(obj), array, obj.requires_grad), obj.__dict__ or None


class Packed:
    """Packed object: the ``sizes`` of its parts in bytes, and the ``size`` of all with padding."""

    __slots__ = ("_parts", "size", "sizes")

    def __init__(self, obj: Any, pickler: Callable[..., Any] = BatchPickler) -> None:
        file, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
        pickler(file, 5, True, buffers.append).dump(obj)
        self._parts = [file.getbuffer(), *(buffer.raw() for buffer in buffers)]
        self.sizes = [part.nbytes for part in self._parts]
        self.size = _offsets(self.sizes)[-1]

    def write(self, memory: Any) -> None:
        """Copy the parts into writable memory of at least ``size`` bytes."""
        target = memoryview(memory)
        for part, offset, size in zip(self._parts, _offsets(self.sizes), self.sizes):
            target[offset : offset + size] = part


def unpack(memory: Array, sizes: list[int]) -> Any:
    """Return the object whose parts lie in ``memory``, an array of bytes; its arrays are views of that memory."""
    first, *rest = (memory[offset : offset + size] for offset, size in zip(_offsets(sizes), sizes))
    return pickle.loads(first.data, buffers=rest)


def _offsets(sizes: list[int]) -> list[int]:
    return list(accumulate((-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes), initial=0))
