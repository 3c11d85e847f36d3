"""Conversion of the index in ``t[index]`` from PyTorch's forms to NumPy's.

They differ where an index has integers and arrays: PyTorch applies the integers and slices first, and the arrays to their
result, so ``t[0, :, [1, 2]]`` has its new dimension last. Hence two parts: one that gives a view, then one that copies.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from ...tensors import Tensor
from ...types import Array
from .array_elements import FULL

# A short list that holds one of these stands for a tuple; other lists are arrays.
_LIKE_TUPLES = (Tensor, slice, type(None), type(Ellipsis), list, tuple, range, np.ndarray)
_BASIC = frozenset((int, type(None), type(Ellipsis)))


def split_index(index: Any, x: Array) -> tuple[Any, tuple[Any, ...] | None]:
    """Return the basic part of an index (``None`` if it takes everything) and the part with arrays (``None`` if empty).

    Raises:
        IndexError: a part of it cannot be an index.
        ValueError: the step of a slice is not positive.
    """
    kind = type(index)
    if kind is int:
        return index, None
    if kind is list and len(index) < 32 and any(isinstance(item, _LIKE_TUPLES) for item in index):
        index = tuple(index)  # as in PyTorch
    items = index if isinstance(index, tuple) else (index,)
    for item in items:
        kind = type(item)
        if kind is slice:
            if item.step is not None:
                _check_step(item)
        elif kind not in _BASIC:
            return _with_arrays(items, x)
    return items if index is None else index, None


def _with_arrays(items: tuple[Any, ...], x: Array) -> tuple[Any, tuple[Any, ...] | None]:
    parts = [_converted(item) for item in items]
    taken = sum(_dims_taken(part) for part in parts)
    if taken > x.ndim:
        raise IndexError(_too_many(x))
    if sum(part is Ellipsis for part in parts) > 1:
        first = next(number for number, part in enumerate(parts) if part is Ellipsis)
        parts = [part for number, part in enumerate(parts) if part is not Ellipsis or number == first]
    basic: list[Any] = []
    advanced: list[Any] = []
    for part in parts:
        if isinstance(part, np.ndarray) and part.ndim:
            basic += [FULL] * (part.ndim if part.dtype.kind == "b" else 1)
            advanced.append(part)
        elif isinstance(part, np.ndarray):  # True or False: a mask over a new dimension
            basic.append(None)
            advanced.append(part.reshape(1))
        else:
            basic.append(part)
            if part is Ellipsis:
                advanced += [FULL] * (x.ndim - taken)
            elif not isinstance(part, int):
                advanced.append(FULL)
    whole = all(part is FULL or part is Ellipsis for part in basic)
    while advanced and advanced[-1] is FULL:
        advanced.pop()
    return None if whole else tuple(basic), tuple(advanced) if advanced else None


def _converted(item: Any) -> Any:
    if isinstance(item, slice):
        if item.step is not None:
            _check_step(item)
        return FULL if item == FULL else item
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(bool(item))
    if isinstance(item, (Tensor, np.ndarray, list, tuple, range)):
        array = item._array if isinstance(item, Tensor) else _nested(item)
        if not array.size and not isinstance(item, (Tensor, np.ndarray)):
            array = array.astype(np.int64)
        return _checked(array)
    try:
        return item.__index__()
    except (AttributeError, TypeError):
        raise IndexError(
            f"an index consists of integers, slices, None, ... and tensors or lists of integers or booleans, "
            f"and you gave a {type(item).__name__}"
        ) from None


def _nested(item: Any) -> Array:
    try:
        return np.asarray(_plain(item))
    except ValueError:  # lists of unequal lengths
        raise IndexError(
            f"a list in an index must be a rectangle of integers or booleans, and you gave {item}"
        ) from None


def _checked(array: Array) -> Any:
    if array.dtype == np.uint8:
        warnings.warn("indexing with uint8 means a mask, which is deprecated; use bool", UserWarning, stacklevel=6)
        array = array.astype(bool)
    if array.dtype.kind not in "biu":
        raise IndexError(f"a tensor index must be of integers or booleans, not {array.dtype}")
    return array if array.ndim or array.dtype.kind == "b" else int(array)


def _plain(item: Any) -> Any:
    if isinstance(item, Tensor):
        return item._array
    return [_plain(part) for part in item] if isinstance(item, (list, tuple)) else item


def _dims_taken(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype.kind == "b" else 1


def _check_step(item: slice) -> None:
    if item.step.__index__() <= 0:
        raise ValueError(f"a slice needs a positive step, and you gave {item.step}; use flip() to go backwards")


_OUT_OF_BOUNDS = re.compile(r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)")
_MASK = re.compile(r"axis (\d+); size of axis is (\d+) but size of corresponding boolean axis is (\d+)")


def out_of_range(error: Exception, x: Array) -> Exception:
    """Return the error of NumPy about an index with a message in our words."""
    text = str(error)
    found = _OUT_OF_BOUNDS.search(text)
    if found:
        index, dim, size = found.groups()
        fits = f"it takes {-int(size)} to {int(size) - 1}" if int(size) else "it is empty"
        return IndexError(f"index {index} is out of range for dimension {dim} of size {size}: {fits}")
    if text.startswith("too many indices"):
        return IndexError(_too_many(x))
    if found := _MASK.search(text):
        dim, size, given = found.groups()
        return IndexError(f"a mask of length {given} does not fit dimension {dim} of size {size}, of shape {x.shape}")
    if text.startswith("shape mismatch"):
        return IndexError(f"indices of shapes {text.rpartition('shapes ')[2].strip()} cannot be broadcast together")
    if text.startswith("cannot do a non-empty take"):
        return IndexError(f"there is nothing to index along an empty dimension of shape {x.shape}")
    return type(error)(text.replace("axis", "dimension").replace("array", "tensor"))


def _too_many(x: Array) -> str:
    if not x.ndim:
        return "a 0-d tensor cannot be indexed by a number; use item() for its value"
    return f"too many indices for a tensor of {x.ndim} dimensions, shape {x.shape}"


def integers(name: str, index: Tensor) -> Array:
    """Return the array of an index of integers, an argument of the operation ``name``.

    Raises:
        TypeError: ``index`` is not a tensor, or has another dtype.
    """
    try:
        array = index._array
    except AttributeError:
        raise TypeError(f"{name}() needs an index tensor, not {type(index).__name__}") from None
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}() needs an index of integers, not {array.dtype}")
    return array


def check_range(name: str, indices: Array, dim: int, length: int) -> None:
    """Raise unless all indices are from 0 to ``length - 1``.

    Args:
        name: name of the operation, for the message.
        indices: the indices.
        dim: the dimension, for the message.
        length: its length.

    Raises:
        IndexError: an index is out of range.
    """
    # As unsigned numbers the negative ones are the largest.
    quick = indices.dtype == np.int64 and indices.flags.c_contiguous
    if indices.size and (
        indices.view(np.uint64).max() >= length if quick else indices.min() < 0 or indices.max() >= length
    ):
        wrong = indices[(indices < 0) | (indices >= length)].flat[0]
        fits = f"outside 0..{length - 1}" if length else "and nothing fits"
        raise IndexError(f"{name}() got index {wrong}, {fits}: dimension {dim} has size {length}")
