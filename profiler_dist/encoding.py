"""Events as bytes: what a callee recorded, for the extra of its reply. Times are the callee's until the caller moves them."""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.profiler import FunctionEvent, profile

logger = logging.getLogger("telegrad.profiler")
PROFILE_OPTIONS = struct.Struct("<B")  # what to record: bits, in the order of ``FLAGS``
FLAGS = ("record_shapes", "profile_memory", "with_stack")
MOST_PROFILE_EVENTS = 100_000  # of one call; the answer of a call that ran for hours must not be too large to send


class Recording(NamedTuple):
    """The events of one call, in nanoseconds of the callee's clock, each after its parent; and when the callee had it."""

    began: int
    ended: int
    events: list[FunctionEvent]


def encode_options(profiles: Sequence[profile]) -> bytes:
    """Return what a callee has to record so that every one of ``profiles`` has what it asks for."""
    return PROFILE_OPTIONS.pack(
        sum(1 << bit for bit, name in enumerate(FLAGS) if any(getattr(each, name) for each in profiles))
    )


def decode_options(data: bytes) -> dict[str, bool]:
    """Return the keyword arguments for the callee's ``profile``."""
    (bits,) = PROFILE_OPTIONS.unpack(data)
    return {name: bool(bits >> bit & 1) for bit, name in enumerate(FLAGS)}


def encode_events(recorded: profile, ended: int) -> bytes:
    """Return the events of a profile that began with one call, and ended with it.

    Args:
        recorded: the callee's profile.
        ended: when it ended, in the nanoseconds of ``time.perf_counter_ns``.
    """
    events = recorded.function_events
    if len(events) > MOST_PROFILE_EVENTS:
        logger.warning("a profiled call has %d events; its caller gets the first %d", len(events), MOST_PROFILE_EVENTS)
        events = events[:MOST_PROFILE_EVENTS]
    places = {event: place for place, event in enumerate(events)}
    rows = [_row(event, places.get(event.cpu_parent, 0)) for event in events]  # type: ignore[arg-type]
    return json.dumps([recorded.began, ended - recorded.began, rows], separators=(",", ":")).encode()


def decode_events(data: bytes) -> Recording:
    """Return what ``encode_events`` encoded."""
    began, duration, rows = json.loads(data)
    events: list[FunctionEvent] = []
    for row in rows:
        event = _event(row)
        if events:
            event.cpu_parent = events[row[-1]]
            event.cpu_parent.cpu_children.append(event)
        events.append(event)
    return Recording(began, began + duration, events)


def _row(event: FunctionEvent, parent: int) -> list[Any]:
    bits = event.backward | event.is_async << 1 | event.blocking << 2
    times = [event.start, event.end, event.children]
    return [
        event.name,
        *times,
        event.thread,
        event.input_shapes,
        event.memory,
        bits,
        event.node_id,
        event.stack,
        parent,
    ]


def _event(row: list[Any]) -> FunctionEvent:
    name, start, end, children, thread, shapes, memory, bits, node_id, stack, _ = row
    return FunctionEvent(
        name,
        start,
        thread,
        _tuples(shapes),
        end,
        children,
        memory,
        backward=bool(bits & 1),
        is_async=bool(bits & 2),
        blocking=bool(bits & 4),
        is_remote=True,
        node_id=node_id,
        stack=stack,
    )


def _tuples(shapes: Any) -> Any:
    return tuple(map(_tuples, shapes)) if isinstance(shapes, list) else shapes
