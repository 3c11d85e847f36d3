"""``MemoryBudget``: bound of the memory of the arrays that a worker received, or keeps for references; more lies in a file."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...base.errors import MemoryBudgetError
from ...core.extend import Tensor, memory_address, memory_owner
from ...core.spill_file import SpillFile
from .layout import Span, groups, span_of

COUNTED_BYTES = 64 * 1024  # smaller arrays are not counted, and stay in memory


class MemoryBudget:
    """Bound of the bytes of arrays in memory. Any thread.

    An array is counted until nothing refers to it any more. Finalizers only append to a queue, and take no lock.

    Args:
        most: most bytes in memory.
        folder: folder of the file that has the others; ``None`` if there are to be none.
        worker: name of the worker, for errors.

    Raises:
        MemoryBudgetError: no file can be made in the folder.
    """

    def __init__(self, most: int, folder: str | os.PathLike[str] | None, worker: str) -> None:
        self.most = most
        self._worker = worker
        self._lock = threading.Lock()
        self._ended: deque[tuple[int | None, int]] = deque()  # what is not there any more, as in ``_counted``
        self._counted: dict[int, int] = {}  # bytes in memory, by the ``id`` of the array that owns them
        self._in_memory = self._in_file = 0
        self._file = self._made_in(os.fspath(folder)) if folder is not None else None

    def _made_in(self, folder: str) -> SpillFile:
        try:
            return SpillFile(folder)
        except OSError as error:
            raise MemoryBudgetError(
                f"worker {self._worker!r} cannot make a file in spill_dir={folder!r}: {error}; give a folder that exists "
                f"and is writable"
            ) from error

    def place(self, arrays: list[Any]) -> None:
        """Count arrays that have arrived, and replace those for which there is no room by such as lie in the file.

        Args:
            arrays: NumPy arrays, changed in place. Those that share memory share it afterwards too.

        Raises:
            MemoryBudgetError: there is no file, or no room in it.
        """
        if sum(array.nbytes for array in arrays) < COUNTED_BYTES:
            return
        for group in sorted(groups(arrays), key=lambda group: min(span.which for span in group)):  # in their order
            size = max(span.end for span in group) - group[0].begin
            if size >= COUNTED_BYTES and not self._has_room([arrays[span.which] for span in group], size):
                self._move(arrays, group, size)

    def place_tensors(self, tensors: Iterable[Any]) -> None:
        """Count the arrays of tensors, as ``place`` does."""
        for tensor in tensors:
            arrays = [tensor._array]
            self.place(arrays)
            tensor._array = arrays[0]

    def keep(self, value: Any) -> None:
        """Count the tensors of a value that this worker has made and keeps; those for which there is no room go to the file.

        Memory that the program refers to as well is its own: it is not counted.

        Args:
            value: a tensor, a list, tuple or dict of such, or a module (its parameters and buffers); others are not looked at.

        Raises:
            MemoryBudgetError: there is no file, or no room in it.
        """
        for tensor in _tensors(value):
            array = tensor._array
            size = array.nbytes
            if (
                size < COUNTED_BYTES
                or sys.getrefcount(array) > _OF_ARRAY
                or not _owns(array)
                or self._has_room([array], size)
            ):
                continue
            moved = [array]
            self._move(moved, groups(moved)[0], size)
            tensor._array = moved[0]

    def counts(self) -> dict[str, int]:
        """Return the bytes that are counted in memory, the most of them, and the bytes in the file, for ``debug_info``."""
        with self._lock:
            self._forget_ended()
            return {"in_memory": self._in_memory, "most": self.most, "in_file": self._in_file}

    def _has_room(self, arrays: Sequence[Any], size: int) -> bool:
        """Return whether there is room in memory for arrays that are ``size`` bytes together; they are counted then."""
        owners = {id(owner): owner for owner in map(memory_owner, arrays)}
        with self._lock:
            self._forget_ended()
            new = [owner for key, owner in owners.items() if key not in self._counted]
            if new and self._in_memory + size > self.most:
                return False
            for owner in new:
                key, share = id(owner), size // len(new)
                self._counted[key] = share
                self._in_memory += share
                weakref.finalize(owner, self._ended.append, (key, share)).atexit = False
            return True

    def _forget_ended(self) -> None:
        # lock held
        while self._ended:
            key, size = self._ended.popleft()
            if key is None:
                self._in_file -= size
            else:
                del self._counted[key]
                self._in_memory -= size

    def _move(self, arrays: list[Any], group: list[Span], size: int) -> None:
        """Copy the memory that a group of arrays spans into the file, and replace them by arrays over the copy."""
        begin = group[0].begin
        memory: Any = self._stored(span_of([arrays[span.which] for span in group], begin, begin + size))
        weakref.finalize(memory.base, self._ended.append, (None, size)).atexit = False
        with self._lock:
            self._in_file += size
        for which in (span.which for span in group):
            array = arrays[which]
            offset = memory_address(array) - begin
            arrays[which] = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)

    def _stored(self, content: Any) -> Any:
        wanted = f"worker {self._worker!r} has no room for {content.nbytes:,} bytes: its memory_budget is {self.most:,} bytes"
        if self._file is None:
            raise MemoryBudgetError(
                f"{wanted}; free values, raise memory_budget=, or give spill_dir=, a folder for more"
            )
        try:
            return self._file.store(content)
        except OSError as error:
            raise MemoryBudgetError(
                f"{wanted}, and {self._file.folder!r}, its spill_dir, has none either: {error}; free values or disk space"
            ) from error


def _tensors(value: Any) -> Iterable[Any]:
    if isinstance(value, Tensor):
        return () if value.is_sparse else (value,)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for each in value if isinstance(each, Tensor) and not each.is_sparse]
    if hasattr(value, "parameters") and hasattr(value, "buffers"):
        return [*value.parameters(), *value.buffers()]
    return ()


def _owns(array: Any) -> bool:
    """Return whether an array has its memory for itself; that of a large one may be a part of another array."""
    memory = array.base
    return memory is None or (
        type(memory) is np.ndarray and memory.base is None and sys.getrefcount(memory) <= _OF_MEMORY
    )


def _references_of_one_user() -> tuple[int, int]:
    user = Tensor(np.ndarray(1, np.uint8, np.empty(1, np.uint8)))
    array = user._array
    memory = array.base
    return sys.getrefcount(array), sys.getrefcount(memory)


_OF_ARRAY, _OF_MEMORY = _references_of_one_user()  # as ``keep`` and ``_owns`` count them
