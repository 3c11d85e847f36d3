"""Records of references for an observation of a worker: type and size of each value, and its holders."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.futures import direct_dependents
from ..rpc.extend import (
    MOST_ROWS,
    Agent,
    ObservedFrame,
    ObservedReference,
    ObservedReferences,
    ids_of_waits,
    keys_of_requests,
)
from .context import REFERENCE_EXTRA, RRefContext
from .forks import Fork
from .ids import RRefId, WorkerKey
from .numbers import ReferenceMethod
from .owner_table import Owned
from .transfers import created_by

BUILT_IN = (int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, type(None))
Names = Callable[[WorkerKey], str]
Place = Callable[[RRefId], ObservedFrame | None]


def observe_references(context: RRefContext, rows: bool = True) -> tuple[ObservedReferences, ObservedReferences]:
    """Return the references that a worker owns, and those of other owners that it holds.

    Args:
        context: the worker's.
        rows: if False, only how many it owns.
    """
    owned, forks = context.records()
    if not rows:
        return ObservedReferences([], len(owned)), ObservedReferences([], 0)
    place = context.places.get if context.places is not None else _nowhere
    return (
        observe_owned(owned, context.agent.name, context.worker, _makers(context.agent), place),
        observe_held(forks, context.me, context.worker, place),
    )


def _nowhere(rref_id: RRefId) -> None:
    return None


def _makers(agent: Agent) -> dict[RRefId, list[int]]:
    """Return, by reference, caller's number and id of the request that makes its value here."""
    serving = list(agent.server.serving.values())
    makers = [call for call in serving if call.method == ReferenceMethod.CREATE and REFERENCE_EXTRA in call.extras]
    return {created_by(call.extras[REFERENCE_EXTRA]): list(call.key) for call in makers}


def observe_owned(
    records: Mapping[RRefId, Owned], owner: str, name: Names, makers: Mapping[RRefId, list[int]], place: Place
) -> ObservedReferences:
    """Return the references that this worker owns, awaited and then largest ones first, and how many it owns.

    Args:
        records: the owner's records, by reference.
        owner: this worker's name.
        name: returns the name of a worker.
        makers: by reference, caller's number and id of the request that makes its value.
        place: returns where this worker's program made a reference; None if it did not, or that is not recorded.
    """
    largest = heapq.nlargest(MOST_ROWS, records.items(), key=_weight)
    rows = [
        _owned(rref_id, record, owner, name, makers.get(rref_id, []), place(rref_id)) for rref_id, record in largest
    ]
    return ObservedReferences(rows, len(records))


def _weight(item: tuple[RRefId, Owned]) -> float:
    """Return the order of a reference in the list: first those whose values are awaited, then the largest."""
    value = item[1].value
    if value is not None and not value.done() and direct_dependents(value):
        return math.inf
    return _described(item[1])[1] or 0


def _described(record: Owned) -> tuple[str, int | None]:
    future = record.value
    if future is None or not future.done() or future.exception() is not None:
        return "", None
    return type_and_size(future.value())


def _owned(
    rref_id: RRefId, record: Owned, owner: str, name: Names, maker: list[int], where: ObservedFrame | None
) -> ObservedReference:
    kind, size = _described(record)
    value = record.value if not record.made else None
    calls, requests = ([], []) if value is None else (ids_of_waits(value), keys_of_requests(value))
    holders = sorted({name(holder) for holder, _ in list(record.forks.values())})
    return ObservedReference(str(rref_id), owner, kind, size, record.made, holders, maker, calls, requests, where)


def observe_held(forks: list[Fork], me: WorkerKey, name: Names, place: Place) -> ObservedReferences:
    """Return references of other owners that this worker holds, each once, and how many it holds.

    Args:
        forks: the forks that it holds.
        me: this worker.
        name: returns the name of a worker.
        place: as for ``observe_owned``.
    """
    held = {fork.rref_id: fork for fork in forks if fork.owner != me}
    shown = islice(held.items(), MOST_ROWS)
    rows = [
        ObservedReference(str(each), name(fork.owner), "", None, fork.settled.done(), where=place(each))
        for each, fork in shown
    ]
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
