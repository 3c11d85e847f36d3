"""``Found``: tensors that a program uses and that are no arguments, as they were when it was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.extend import Tensor


class Found:
    """Tensors, and of what kind they are: whether they require grad, shape, dtype, strides, and whether hooks see them.

    Args:
        tensors: the tensors.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors
        self._kinds = [_kind(tensor) for tensor in tensors]
        self._arrays: list[Any] = [tensor._array for tensor in tensors]

    def same(self) -> bool:
        """Return whether all are as they were. The elements may be others."""
        arrays = self._arrays
        for place, (tensor, kind) in enumerate(zip(self.tensors, self._kinds)):
            requires_grad, shape, dtype, strides, hooked = kind
            array = tensor._array
            if array is not arrays[place]:  # as after each step of a distributed optimizer; ``_kind``, without a call
                if array.shape != shape or array.dtype != dtype or array.strides != strides:
                    return False
                arrays[place] = array
            if tensor._requires_grad is not requires_grad:
                return False
            if (tensor._hooks is not None or tensor._edge is not None) is not hooked:
                return False
        return True

    def alike(self, other: Found) -> bool:
        """Return whether others are the same tensors, and were of the same kinds."""
        return self._kinds == other._kinds and list(map(id, self.tensors)) == list(map(id, other.tensors))


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    array = tensor._array
    hooked = tensor._hooks is not None or tensor._edge is not None
    return tensor._requires_grad, array.shape, array.dtype, array.strides, hooked
