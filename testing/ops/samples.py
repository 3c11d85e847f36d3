"""Shapes of samples: ordinary, 0-d, empty and broadcast ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .check import Make

SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (0,), (2, 0, 3), (1, 5, 1))
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((3,), ()),
    ((), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((4, 1, 3), (2, 1)),
    ((0,), ()),
    ((2, 0), (1, 1)),
    ((2, 3), (2, 3)),
)


def unary(low: float = 0.3, high: float = 1.7, **options: Any) -> Callable[[Make], list[tuple[Any, ...]]]:
    """Return samples of one tensor for each of ``SHAPES``, with elements between ``low`` and ``high``."""
    return lambda make: [(make(*shape, low=low, high=high, **options),) for shape in SHAPES]


def binary(low: float = 0.3, high: float = 1.7, **options: Any) -> Callable[[Make], list[tuple[Any, ...]]]:
    """Return samples of two tensors for each of ``PAIRS``, with elements between ``low`` and ``high``."""
    return lambda make: [
        (make(*first, low=low, high=high, **options), make(*second, low=low, high=high, **options))
        for first, second in PAIRS
    ]
