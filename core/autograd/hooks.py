"""Hooks of tensors and nodes, and the handles that remove them.

A handle refers to its table weakly: a hook that refers to its own handle (to remove itself) makes no reference cycle. A pickle
or a deep copy of a handle, together with the module that has the hook, removes the hook of the copy.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeAlias

Hook: TypeAlias = Callable[..., Any]

_ids = itertools.count()


class HookTable(dict[int, Any]):
    """Hooks in the order of their registration. Iterate with ``calls``: hooks may remove hooks while they run."""

    __slots__ = ("__weakref__",)

    def add(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Put ``hook`` after all others, or before them, and return the handle that removes it."""
        key = next(key for key in _ids if key not in self)  # a table that was pickled has keys of another process
        others = list(self.items()) if prepend else ()
        if prepend:
            self.clear()
        self[key] = hook
        self.update(others)
        return RemovableHandle(self, key)

    def calls(self) -> Iterator[Any]:
        """Yield the hooks one by one, except those that an earlier hook has removed meanwhile."""
        for key in list(self):
            if key in self:
                yield self[key]


class RemovableHandle:
    """Handle of a registered hook: ``remove()`` removes the hook; so does the end of a ``with`` block."""

    __slots__ = ("_table", "id")

    def __init__(self, table: HookTable, key: int) -> None:
        self._table = weakref.ref(table)
        self.id = key

    def __getstate__(self) -> tuple[HookTable | None, int]:
        return self._table(), self.id

    def __setstate__(self, state: tuple[HookTable | None, int]) -> None:
        table, self.id = state
        self._table = weakref.ref(HookTable() if table is None else table)

    def remove(self) -> None:
        """Remove the hook; calling it again does nothing."""
        table = self._table()
        if table is not None:
            table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.remove()


class NodeHooks:
    """All hooks of one node; made when the first is registered, so that most nodes have only ``None``."""

    __slots__ = ("after", "before", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor = HookTable()  # (slot, hook(grad) -> grad | None): hooks of the tensors that this node produced
        self.retained: dict[int, weakref.ref[Any]] = {}  # slot -> tensor that retains its gradient
        self.before = HookTable()  # hook(grad_outputs) -> grad_outputs | None
        self.after = HookTable()  # hook(grad_inputs, grad_outputs) -> grad_inputs | None
