"""Warnings of a worker's part of a mesh call: they travel with its result, over all hops, and are issued at the caller.

A result without warnings is a plain ``Content``. Those of the results of an answer are one more body, the last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..wire.bundle import Content
from ..wire.header import Flag

if TYPE_CHECKING:
    from ..calls.replies import WarningRow
    from ..calls.server_call import ServerCall

Warned = tuple[int, "Sequence[WarningRow]"]  # number of a worker, and its warnings
Results = Sequence[tuple[int, Content]]


class WarnedResult(Content):
    """Result of a worker, or of several that were added up, with the warnings that were shown meanwhile.

    Args:
        result: the result.
        warned: the warnings of each worker.
    """

    __slots__ = ("warned",)

    def __init__(self, result: Content, warned: Sequence[Warned]) -> None:
        super().__init__(result.flags, result.pickled, result.tensors, result.references, result.buffers)
        self.warned = warned


def with_warnings(result: Content, request: ServerCall | None, number: int) -> Content:
    """Return a result with the warnings of the request for which it was made, which has them no more.

    Args:
        result: the result.
        request: of the call.
        number: of this worker.
    """
    if request is None or not request.warnings:
        return result
    rows, request.warnings = request.warnings, ()
    return WarnedResult(result, [(number, rows)])


def warnings_of(results: Iterable[Content]) -> list[Warned]:
    """Return the warnings of all results."""
    return [each for result in results if isinstance(result, WarnedResult) for each in result.warned]


def pack_warnings(results: Sequence[Content]) -> Sequence[Content]:
    """Return the bodies of an answer: its results, and their warnings if there are any."""
    rows = [(place, result.warned) for place, result in enumerate(results) if isinstance(result, WarnedResult)]
    return [*results, Content(Flag.PLAIN, (json.dumps(rows).encode(),))] if rows else results


def open_warnings(bodies: Sequence[Content], count: int) -> Sequence[Content]:
    """Return the results of an answer that has ``count`` of them, from its bodies."""
    if len(bodies) == count:
        return bodies
    results = list(bodies[:count])
    for place, warned in json.loads(b"".join(bodies[count].pickled)):
        results[place] = WarnedResult(results[place], warned)
    return results
