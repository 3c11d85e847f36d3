"""``ArrayLike``: base of objects that stand for arrays in tensors, and record the functions that are called with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np


class ArrayLike:
    """Object in the place of a tensor's array: it has the attributes of one, and takes over NumPy's functions.

    NumPy's protocols ``__array_ufunc__`` and ``__array_function__`` bring most calls to it. ``np.asarray`` has no such
    protocol, so it raises: code that is to work with these objects calls ``as_array``.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def as_array(x: Any) -> Any:
    """Return an array, or an ``ArrayLike``, as it is, and a number as an array.

    Where each microsecond counts, call it for what is no array: ``x if type(x) is _ndarray else as_array(x)``.
    """
    return x if isinstance(x, (np.ndarray, ArrayLike)) else np.asarray(x)
