"""The memory of NumPy arrays: which array owns it, and its address."""

from __future__ import annotations

import numpy as np

from .types import Array


def storage(array: Array) -> Array:
    """Return the array that owns the memory of ``array``: the last one in its chain of ``base``.

    >>> whole = np.zeros((2, 3))
    >>> storage(whole[0, 1:]) is whole
    True
    """
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def typed_storage(array: Array) -> Array:
    """Return the largest array of the same dtype that ``array`` is a view of; itself if there is none."""
    while isinstance(array.base, np.ndarray) and array.base.dtype == array.dtype:
        array = array.base
    return array


def address(array: Array) -> int:
    """Return the address of the first element."""
    return array.__array_interface__["data"][0]
