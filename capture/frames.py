"""``Frames``: sets of memory of a program, each bound to a function that runs it."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ..core.extend import Array
from .source import Source
from .values import Value

_MODULE = f"{__name__.rpartition('.')[0]}.replays"  # NumPy's warnings are silenced in the library's modules


class Frames:
    """Functions that run a program. A replay takes one, so replays in several threads do not meet.

    Args:
        source: the program.
        label: a name for readers.

    Attributes:
        free: those that no replay uses.
    """

    def __init__(self, source: Source, label: str) -> None:
        module = compile(source.text, f"<replay of {label}>", "exec")
        self._views = compile("\n".join(source.views), f"<views of {label}>", "exec")
        self._code = next(each for each in module.co_consts if isinstance(each, CodeType))
        self._source = source
        self.free: list[FunctionType] = []

    def take(self) -> FunctionType:
        """Return a free function, or a new one. After a replay it is put back to ``free``; after an error it is not."""
        try:
            return self.free.pop()
        except IndexError:
            return self.make()

    def make(self) -> FunctionType:
        """Return a function with new memory.

        Raises:
            ValueError: an array does not fit its memory.
        """
        source = self._source
        names: dict[str, Any] = {"__name__": _MODULE, **source.constants}
        memory = [_aligned(size) for size in source.sizes]
        for name, (number, value) in source.buffers.items():
            names[name] = _array(memory[number], value)
        exec(self._views, names)  # lines of the program itself
        return FunctionType(self._code, names)


def _aligned(size: int) -> Array:
    memory = np.empty(size + 63, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]


def _array(memory: Array, value: Value) -> Array:
    return np.ndarray(value.shape, value.dtype, memory, 0, value.strides)
