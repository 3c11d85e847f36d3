"""``ArrayLike``: base of objects that stand for arrays in tensors, and record the functions that are called with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided


class ArrayLike:
    """Object in the place of a tensor's array: it has the attributes of one, and takes over NumPy's functions.

    NumPy's protocols ``__array_ufunc__`` and ``__array_function__`` bring most calls to it. ``np.asarray`` has no such
    protocol, so it raises: code that is to work with these objects calls ``as_array``.

    ``x.written(function, *args)`` records the call ``function(x, *args)``, which writes to ``x`` and may look at elements.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def as_array(x: Any) -> Any:
    """Return an array, or an ``ArrayLike``, as it is, and a number as an array.

    Where each microsecond counts, call it for what is no array: ``x if type(x) is _ndarray else as_array(x)``.
    """
    return x if isinstance(x, (np.ndarray, ArrayLike)) else np.asarray(x)


def strided(x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Return a view of the memory of an array, or of an ``ArrayLike``, which cannot be written to.

    Args:
        x: the array.
        shape: of the view.
        strides: steps from one element to the next, in bytes. No element may lie outside of the array's memory.
    """
    if isinstance(x, ArrayLike):
        return x.strided(shape, strides)
    if not x.flags.c_contiguous:
        return as_strided(x, shape, strides, writeable=False)
    view: np.ndarray = np.ndarray(shape, x.dtype, x, 0, strides)  # a sixth of the time of as_strided
    view.flags.writeable = False
    return view


def write(function: Callable[..., Any], target: Any, *args: Any) -> None:
    """Call ``function(target, *args)``, which writes to ``target``; an ``ArrayLike`` notes the call."""
    if isinstance(target, ArrayLike):
        target.written(function, *args)
    else:
        function(target, *args)


def holds(condition: Callable[..., Any], *args: Any) -> bool:
    """Return whether elements of arrays satisfy a condition, as one that an operation checks before it begins.

    Args:
        condition: a function of arrays and numbers, without effects.
        *args: its arguments. An ``ArrayLike`` among them notes the condition, and raises if it is not satisfied.
    """
    for each in args:
        if isinstance(each, ArrayLike):
            return bool(each.holds(condition, args))
    return bool(condition(*args))


def within(numbers: np.ndarray, count: int) -> bool:
    """Return whether all elements, of which there is at least one, are from 0 to ``count - 1``: a condition for ``holds``."""
    if numbers.dtype.kind == "i":
        numbers = numbers.view(f"u{numbers.itemsize}")  # negative ones are the largest then
    return bool(numbers.max() < count)


def change(function: Callable[..., Any], *args: Any) -> None:
    """Call a function that changes a tensor in place, as the running statistics of ``batch_norm``.

    Args:
        function: changes its first argument, and returns nothing.
        *args: its arguments: a tensor, arrays and numbers. An ``ArrayLike`` among them notes the call, which is not made.
    """
    for each in args:
        if isinstance(each, ArrayLike):
            each.note(function, args)
            return
    function(*args)
