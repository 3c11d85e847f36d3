"""Records of references for an observation of a worker: type and size of each value, and its holders."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ..core import Tensor
from ..rpc.extend import MOST_ROWS, ObservedReference, ObservedReferences
from .forks import Fork
from .ids import RRefId, WorkerKey
from .owner_table import Owned

BUILT_IN = (int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, type(None))
Names = Callable[[WorkerKey], str]


def observe_owned(records: Mapping[RRefId, Owned], owner: str, name: Names) -> ObservedReferences:
    """Return the largest references that this worker owns, and how many it owns: there may be many.

    Args:
        records: the owner's records, by reference.
        owner: this worker's name.
        name: returns the name of a worker.
    """
    largest = heapq.nlargest(MOST_ROWS, records.items(), key=lambda item: _described(item[1])[1] or 0)
    return ObservedReferences([_owned(rref_id, record, owner, name) for rref_id, record in largest], len(records))


def _described(record: Owned) -> tuple[str, int | None]:
    future = record.value
    if future is None or not future.done() or future.exception() is not None:
        return "", None
    return type_and_size(future.value())


def _owned(rref_id: RRefId, record: Owned, owner: str, name: Names) -> ObservedReference:
    kind, size = _described(record)
    holders = sorted({name(holder) for holder, _ in list(record.forks.values())})
    return ObservedReference(str(rref_id), owner, kind, size, record.made, holders)


def observe_held(forks: list[Fork], me: WorkerKey, name: Names) -> ObservedReferences:
    """Return references of other owners that this worker holds, each once, and how many it holds.

    Args:
        forks: the forks that it holds.
        me: this worker.
        name: returns the name of a worker.
    """
    held = {fork.rref_id: fork for fork in forks if fork.owner != me}
    shown = islice(held.items(), MOST_ROWS)
    rows = [ObservedReference(str(each), name(fork.owner), "", None, fork.settled.done()) for each, fork in shown]
    return ObservedReferences(rows, len(held))


def type_and_size(value: Any) -> tuple[str, int | None]:
    """Return the name of a value's type, and its size in bytes; None if only code of the user's could tell it.

    A container's size is that of the container, without the objects in it.
    """
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if kind is np.ndarray:
        return name, int(value.nbytes)
    if isinstance(value, Tensor):
        return name, int(value._array.nbytes)
    return name, sys.getsizeof(value) if kind in BUILT_IN else None
