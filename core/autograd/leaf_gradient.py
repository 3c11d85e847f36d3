"""Storage of a leaf's first gradient: an array that may have other holders, copied when a program reads ``.grad``.

``a + b`` gives the same array to both inputs, and an optimizer only reads gradients: for those no copy is needed.

A large array that a program gives to ``backward()`` is *lent*: most operations compute new gradients from it. If it reaches a
leaf or a program's function all the same, as through ``reshape``, it is copied there at once, because either may change it.
"""

from __future__ import annotations

import sys
import threading

import numpy as np

from ..array_memory import storage
from ..types import Array, DType

# Held while a leaf's gradient is replaced or added to in place: backward passes in several threads may reach one leaf.
# No tensor operation runs under it. Reentrant, because NumPy may run a finalizer, and that a backward pass of its own.
grad_lock = threading.RLock()

_LENT = 1 << 12  # elements; smaller ones are copied: gradients that are broadcast from them need no second copy


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


def lend(array: Array, dtype: DType) -> Array:
    """Return a program's array, in a dtype, as the gradient that a backward pass starts with.

    Args:
        array: the program's, which it may change after the pass. Large ones are returned as views that cannot be written to.
        dtype: of the result.
    """
    # The memory's size too: gradients that are expanded from fewer elements are not taken for lent ones.
    if type(array) is not np.ndarray or array.size < _LENT or array.dtype != dtype or storage(array).size < _LENT:
        return array.astype(dtype)
    view = array.view()
    view.flags.writeable = False
    return view


def returned(grad: Array) -> Array:
    """Return a copy of a gradient if its array may be one that a program has lent; otherwise the gradient itself.

    Args:
        grad: a gradient that leaves the backward pass.
    """
    lent = not grad.flags.writeable and storage(grad).size >= _LENT
    return grad.copy() if lent else grad
