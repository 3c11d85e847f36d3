"""The profiles of the current thread or task, and the innermost open event of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .events import FunctionEvent

# Context variables, not stacks of threads: many coroutines share a thread, and a callback continues what began in another.
profiles: ContextVar[tuple[Any, ...]] = ContextVar("telegrad_profiles", default=())
_innermost: ContextVar[Mapping[Any, FunctionEvent]] = ContextVar(
    "telegrad_profile_events", default=MappingProxyType({})
)


def innermost(recorder: Any) -> FunctionEvent | None:
    """Return the event of ``recorder`` that is open here and inside all others; ``None`` if there is none."""
    event = _innermost.get().get(recorder)
    while event is not None and event.end is not None:
        event = event.cpu_parent  # it ended in another context
    return event


@contextmanager
def recorded_by(recorders: Iterable[Any]) -> Iterator[None]:
    """Let profiles that were entered for this in another thread or task record what runs in a block, inside their first event.

    Args:
        recorders: the profiles; those that record here anyway, and those that were left, are not touched.
    """
    fresh = [each for each in recorders if each.running and each not in profiles.get()]
    for recorder in fresh:
        recorder.watch_here()
        step_in(recorder, recorder.function_events[0])
    try:
        yield
    finally:
        for recorder in fresh:
            recorder.stop_here()


def step_in(recorder: Any, event: FunctionEvent) -> None:
    """Let what begins now be inside ``event``."""
    _innermost.set({**_innermost.get(), recorder: event})


def step_out(recorder: Any, event: FunctionEvent) -> None:
    """Let what begins now be beside ``event``, if it would be inside it."""
    present = dict(_innermost.get())
    inside = present.pop(recorder, None)
    while inside is not None and inside is not event:
        inside = inside.cpu_parent
    if inside is None:
        return
    if event.cpu_parent is not None:
        present[recorder] = event.cpu_parent
    _innermost.set(present)
