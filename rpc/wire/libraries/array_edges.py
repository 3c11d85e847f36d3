"""``ArrayEdges``: the nodes that made arrays of a library which records nothing itself."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ....core.extend import Edge


class ArrayEdges:
    """Table of arrays and their nodes. An array leaves it when it is freed, and so does the graph that only the array needs."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], Edge]] = {}  # by id() of the array

    def set(self, array: Any, edge: Edge) -> None:
        """Let an array be output ``edge[1]`` of the node ``edge[0]``."""
        entries, key = self._entries, id(array)
        # A finalizer takes no lock, and this is one operation. It runs before another array can have the id.
        entries[key] = weakref.ref(array, lambda _: entries.pop(key, None)), edge

    def find(self, array: Any) -> Edge | None:
        """Return the node that made an array, and the number of its output; ``None`` if it is not recorded."""
        entry = self._entries.get(id(array))
        return entry[1] if entry is not None and entry[0]() is array else None
