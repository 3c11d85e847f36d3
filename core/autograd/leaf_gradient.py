"""Storage of a leaf's first gradient: an array that may have other holders, copied when a program reads ``.grad``.

``a + b`` gives the same array to both inputs, and an optimizer only reads gradients: for those no copy is needed.
"""

from __future__ import annotations

import sys
import threading

from ..types import Array

# Held while a leaf's gradient is replaced or added to in place: backward passes in several threads may reach one leaf.
# No tensor operation runs under it. Reentrant, because NumPy may run a finalizer, and that a backward pass of its own.
grad_lock = threading.RLock()


class BorrowedGradient:
    """An array used as a leaf's gradient that other objects may refer to as well."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def to_owned(self) -> Array:
        """Return the array itself if this object is its only holder, else a copy."""
        # Two references: this object's, and the argument of getrefcount.
        alone = sys.getrefcount(self._array) == 2 and self._array.base is None and self._array.flags.c_contiguous
        return self._array if alone else self._array.copy()
