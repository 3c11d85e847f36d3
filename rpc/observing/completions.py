"""Calls and requests that complete when a future does. No code of a callback runs here."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from ...core.futures import Future, direct_dependents
from ..calls.dispatch import PendingCall
from ..calls.server_call import ServerCall

MOST_DEPENDENTS = 1000


def dependents(future: Future[Any]) -> Iterator[Any]:
    """Return the futures, waits and requests that complete when a future does, itself included, the nearest first.

    Args:
        future: a future that is not complete.
    """
    queue: deque[Any] = deque([future])
    seen: set[int] = set()
    while queue and len(seen) < MOST_DEPENDENTS:
        each = queue.popleft()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, PendingCall):
            queue.append(each.future)
        elif isinstance(each, Future):
            queue += direct_dependents(each, (PendingCall, ServerCall))


def keys_of_requests(future: Future[Any]) -> list[list[int]]:
    """Return caller's number and id of each request that is answered when a future completes."""
    return [list(each.key) for each in dependents(future) if isinstance(each, ServerCall)]


def ids_of_waits(future: Future[Any]) -> list[int]:
    """Return the ids of this worker's waits that end when a future completes."""
    return [each.call_id for each in dependents(future) if isinstance(each, PendingCall)]
