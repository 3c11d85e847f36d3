"""Shapes and dimensions as users write them: ``f(2, 3)``, ``f((2, 3))``, ``f(size=(2, 3))``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def listed(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the items of ``*given``, passed one by one or as one tuple or list.

    >>> listed((2, 3)), listed(((2, 3),))
    ((2, 3), (2, 3))
    """
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


def to_shape(given: tuple[Any, ...], size: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the shape given as ``(2, 3)``, as ``((2, 3),)``, or as ``size`` and nothing else.

    Raises:
        TypeError: the lengths are not integers, or both ways are used.
        ValueError: a length is negative.
    """
    if size is not None:
        if given:
            raise TypeError(f"the shape is given twice: {given} and size={size}")
        given = (size,)
    lengths = listed(given)
    try:
        shape = tuple(length.__index__() for length in lengths)
    except AttributeError:
        raise TypeError(f"a shape consists of integers, and you gave {lengths}") from None
    if any(length < 0 for length in shape):
        raise ValueError(f"a shape cannot have negative lengths, and you gave {shape}")
    return shape
