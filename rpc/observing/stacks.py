"""Threads of this process: their stacks, and the calls and requests that they wait for and serve.

A thread that waits has the frame of ``Future.wait`` on its stack, with the future; one that serves a request has the frame of
``ServerCall``. So calls cost nothing for being observed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from ..calls.serving import SERVE_CODE
from ..wire.messages import QUESTIONS
from .records import MOST_CHARACTERS, MOST_ROWS, ObservedThread, ObservedWait
from .suspended import frames_of, observe_generators, observe_task, tasks_of_loops
from .thread_waits import NO_LAYERS, WaitOf, held_locks, observed, place_of_frames, wait_of

if TYPE_CHECKING:
    from ..agent import Agent

MOST_FRAMES = 100
OBSERVER = f"{__package__}.observer"
COMMANDS = f"{__package__}.command_socket"
Stack = list[FrameType]  # the innermost first


def observe_threads(
    agent: Agent, awaited: Mapping[int, list[int]], layers: Mapping[CodeType, WaitOf] = NO_LAYERS
) -> list[ObservedThread]:
    """Return the threads of this process, and its coroutines and generators that are suspended.

    Args:
        agent: the agent whose worker is observed.
        awaited: ids of the calls that complete a future, by its ``id``.
        layers: as for ``wait_of``.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = [(ident, list(_frames(frame))) for ident, frame in list(sys._current_frames().items())[:MOST_ROWS]]
    found = [
        (_thread(ident, names.get(ident, "not of Python"), each, awaited, agent, layers), each)
        for ident, each in stacks
    ]
    for loop, task in tasks_of_loops(stacks):
        if frames := frames_of(task.get_coro()):
            found.append((observe_task(loop, task, frames, awaited), frames))
    found += observe_generators(agent)
    return _with_locks(found)


def _thread(
    ident: int,
    name: str,
    frames: Stack,
    awaited: Mapping[int, list[int]],
    agent: Agent,
    layers: Mapping[CodeType, WaitOf],
) -> ObservedThread:
    request = next((each for each in _locals(frames, SERVE_CODE) if each.method not in QUESTIONS), None)
    # A thread that observes waits for observations: these are no part of the program's waits.
    wait = ObservedWait("observation") if any(_observers(frames)) else wait_of(frames, awaited, agent, layers)
    return ObservedThread(
        ident,
        name[:MOST_CHARACTERS],
        [observed(each) for each in reversed(frames)],
        waits=wait is not None and wait.kind in ("future", "window", "shutdown"),
        waits_for=wait.calls[0] if wait and wait.calls else None,
        serves=[] if request is None else list(request.key),
        main=ident == threading.main_thread().ident,
        at=place_of_frames(frames),
        wait=wait,
    )


def _with_locks(found: list[tuple[ObservedThread, Stack]]) -> list[ObservedThread]:
    """Return the threads, each with the locks that it holds, of those that others wait for."""
    wanted = frozenset(each.wait.object for each, _ in found if each.wait is not None and each.wait.object)
    if not wanted:
        return [each for each, _ in found]
    return [replace(each, holds=held_locks(frames, wanted)) for each, frames in found]


def _frames(innermost: FrameType) -> Iterator[FrameType]:
    frame: FrameType | None = innermost
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _observers(frames: Stack) -> Iterator[bool]:
    known = {("observe", OBSERVER), ("_serve", COMMANDS)}
    return ((frame.f_code.co_name, frame.f_globals.get("__name__")) in known for frame in frames)


def _locals(frames: Stack, code: object) -> Iterator[Any]:
    """Return ``self`` of each frame that runs a method, the innermost first."""
    return (frame.f_locals["self"] for frame in frames if frame.f_code is code)
