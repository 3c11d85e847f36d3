"""Two copies in memory, the limit of shared memory: one into a segment and one out of it, both already mapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import Library, Place, UnsupportedError


def make(transport: str) -> Copies:
    """Return the copies."""
    return Copies()


class Copies(Library):
    """Echo within one process."""

    def __init__(self) -> None:
        self.versions = {"numpy": np.__version__}

    def join(self, rank: int, world: int, place: Place) -> None:
        self._there = self._back = self.array(0)

    def call(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        if function.__name__ != "echo":
            raise UnsupportedError("it only copies")
        (array,) = args
        if len(array) != len(self._there):
            self._there, self._back = np.ones_like(array), np.ones_like(array)
        np.copyto(self._there, array)
        np.copyto(self._back, self._there)
        return self._back

    def array(self, size: int) -> Any:
        return np.ones(size, dtype=np.uint8)
