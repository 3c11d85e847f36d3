"""Records of references for an observation of a worker: type and size of each value, and its holders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core import Tensor
from ..rpc.extend import ObservedReference
from .forks import Fork
from .ids import RRefId, WorkerKey
from .owner_table import Owned

BUILT_IN = (int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, type(None))
Names = Callable[[WorkerKey], str]


def observe_owned(records: Mapping[RRefId, Owned], owner: str, name: Names) -> list[ObservedReference]:
    """Return the references that this worker owns.

    Args:
        records: the owner's records, by reference.
        owner: this worker's name.
        name: returns the name of a worker.
    """
    return [_owned(rref_id, record, owner, name) for rref_id, record in records.items()]


def _owned(rref_id: RRefId, record: Owned, owner: str, name: Names) -> ObservedReference:
    made = record.value is not None and record.value.done()
    kind, size = ("", None)
    if made and record.value is not None and record.value.exception() is None:
        kind, size = type_and_size(record.value.value())
    holders = sorted({name(holder) for holder, _ in list(record.forks.values())})
    return ObservedReference(str(rref_id), owner, kind, size, made, holders)


def observe_held(forks: list[Fork], me: WorkerKey, name: Names) -> list[ObservedReference]:
    """Return the references of other owners that this worker holds, each once.

    Args:
        forks: the forks that it holds.
        me: this worker.
        name: returns the name of a worker.
    """
    held = {str(fork.rref_id): fork for fork in forks if fork.owner != me}
    return [
        ObservedReference(rref_id, name(fork.owner), "", None, fork.settled.done()) for rref_id, fork in held.items()
    ]


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
