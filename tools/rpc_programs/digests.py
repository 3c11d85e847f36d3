"""Results as numbers: one number of many, and one that tells of a failure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from .cells import combine


def failed(number: int) -> int:
    """Return the result of a step that raises as planned."""
    return -combine(number, 1)


def digest(numbers: Iterable[int]) -> int:
    """Return one number of many, in their order."""
    numbers = list(numbers)
    return reduce(combine, numbers, len(numbers))
