"""Stacks of this process: its threads, and the coroutines and generators that are suspended, and what they wait for and serve.

A thread that waits has the frame of ``Future.wait`` on its stack, with the future; one that serves a request has the frame of
``ServerCall``. So calls cost nothing for being observed. No thread has the frames of a coroutine or generator that waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import TYPE_CHECKING, Any

from ...base.thread_frames import thread_frames
from ...core.futures import Future
from ..calls.server_call import SERVING_CODES
from ..functions.producing import Producers
from ..threads.coroutines import RUNNER_CODE
from ..wire.messages import QUESTIONS
from .completions import keys_of_requests
from .records import MOST_CHARACTERS, MOST_ROWS, ObservedThread, ObservedWait
from .thread_waits import NO_LAYERS, RUN_CODE, WaitOf, frames_of, held_locks, observed, place_of_frames, wait_of

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.server_call import ServerCall

MOST_TASKS = 1000
MOST_AWAITS = 100  # in a coroutine's stack
AWAIT_CODE = Future.__await__.__code__
ASYNC_WAITS: dict[CodeType, str] = {
    asyncio.sleep.__code__: "sleep",
    asyncio.Event.wait.__code__: "event",
    asyncio.Queue.get.__code__: "queue",
    asyncio.Queue.put.__code__: "queue",
    asyncio.Lock.acquire.__code__: "condition",
    asyncio.Semaphore.acquire.__code__: "condition",
    asyncio.Condition.wait.__code__: "condition",
}
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
    stacks = [(ident, list(frames_of(frame))) for ident, frame in list(thread_frames().items())[:MOST_ROWS]]
    found = [
        (_thread(ident, names.get(ident, "not of Python"), each, awaited, agent, layers), each)
        for ident, each in stacks
    ]
    for loop, task in _tasks_of_loops(stacks):
        if frames := _frames_of(task.get_coro()):
            found.append((_task(loop, task, frames, awaited), frames))
    found += _generators(agent)
    return _with_locks(found)


def _thread(
    ident: int,
    name: str,
    frames: Stack,
    awaited: Mapping[int, list[int]],
    agent: Agent,
    layers: Mapping[CodeType, WaitOf],
) -> ObservedThread:
    request = next((each for each in _requests(frames) if each.method not in QUESTIONS), None)
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


def place_of_call(call: ServerCall) -> str:
    """Return words for the line of the program that a request runs: `` in train at train.py:12``; empty if it is not known."""
    for innermost in thread_frames().values():
        frames = list(frames_of(innermost))
        if any(each is call for each in _requests(frames)):
            at = place_of_frames(frames)
            return f" in {at.function} at {at.file}:{at.line}" if at else ""
    return ""


def _with_locks(found: list[tuple[ObservedThread, Stack]]) -> list[ObservedThread]:
    """Return the threads, each with the locks that it holds, of those that others wait for."""
    wanted = frozenset(each.wait.object for each, _ in found if each.wait is not None and each.wait.object)
    if not wanted:
        return [each for each, _ in found]
    return [replace(each, holds=held_locks(frames, wanted)) for each, frames in found]


def _observers(frames: Stack) -> Iterator[bool]:
    known = {("observe", OBSERVER), ("_serve", COMMANDS)}
    return ((frame.f_code.co_name, frame.f_globals.get("__name__")) in known for frame in frames)


def _requests(frames: Stack) -> Iterator[Any]:
    """Return the requests that a thread serves, the innermost first."""
    names = ((frame, SERVING_CODES.get(frame.f_code)) for frame in frames)
    return (frame.f_locals[name] for frame, name in names if name is not None)


# -- coroutines and generators


def _tasks_of_loops(stacks: Iterable[tuple[int, list[FrameType]]]) -> Iterator[tuple[int, asyncio.Task[Any]]]:
    """Return the tasks of the event loops that threads run, each with the number of its thread.

    Args:
        stacks: number and frames of each thread.
    """
    left = MOST_TASKS
    for ident, frames in stacks:
        loop = next((frame.f_locals["self"] for frame in frames if frame.f_code is RUN_CODE), None)
        for task in _tasks(loop)[:left] if loop is not None else []:
            left -= 1
            yield ident, task


def _tasks(loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
    try:
        return sorted(asyncio.all_tasks(loop), key=id)
    except RuntimeError:  # other threads make tasks all the time
        return []


def _frames_of(suspended: Any) -> list[FrameType]:
    """Return the frames of a coroutine or generator and of those that it awaits, the innermost first; none while it runs."""
    frames: list[FrameType] = []
    while suspended is not None and len(frames) < MOST_AWAITS:
        if type(suspended) is CoroutineType:
            frame, running, inner = suspended.cr_frame, suspended.cr_running, suspended.cr_await
        elif type(suspended) is GeneratorType:
            frame, running, inner = suspended.gi_frame, suspended.gi_running, suspended.gi_yieldfrom
        elif type(suspended) is AsyncGeneratorType:
            frame, running, inner = suspended.ag_frame, suspended.ag_running, suspended.ag_await
        else:
            break
        if running:
            return []
        if frame is not None:
            frames.append(frame)
        suspended = inner
    return frames[::-1]


def _task(
    loop: int, task: asyncio.Task[Any], frames: list[FrameType], awaited: Mapping[int, list[int]]
) -> ObservedThread:
    """Return the record of a coroutine.

    Args:
        loop: number of the thread that runs its event loop.
        task: the task that runs it.
        frames: its frames, the innermost first.
        awaited: ids of the calls that complete a future, by its ``id``.
    """
    future = next((frame.f_locals["self"] for frame in frames if frame.f_code is AWAIT_CODE), None)
    kind = next((ASYNC_WAITS[frame.f_code] for frame in frames if frame.f_code in ASYNC_WAITS), "await")
    wait = ObservedWait(kind) if future is None else ObservedWait("future", calls=awaited.get(id(future), []))
    outcome = next((frame.f_locals.get("outcome") for frame in frames if frame.f_code is RUNNER_CODE), None)
    served = keys_of_requests(outcome) if isinstance(outcome, Future) else []
    return ObservedThread(
        id(task),
        frames[-1].f_code.co_name[:MOST_CHARACTERS] if outcome is None else frames[-2:][0].f_code.co_name,
        [observed(each) for each in reversed(frames)],
        waits=future is not None,
        serves=served[0] if served else [],
        kind="coroutine",
        at=place_of_frames(frames),
        wait=wait,
        loop=loop,
    )


def _generators(agent: Any) -> Iterator[tuple[ObservedThread, list[FrameType]]]:
    """Return the record and the frames of each generator that makes items for another worker and waits until it asks for one.

    Args:
        agent: the worker's agent.
    """
    if not agent.has(Producers):
        return
    for call, iterator in agent.part(Producers).suspended():
        if frames := _frames_of(iterator):
            yield (
                ObservedThread(
                    id(iterator),
                    call.what[:MOST_CHARACTERS],
                    [observed(each) for each in reversed(frames)],
                    serves=list(call.key),
                    kind="generator",
                    at=place_of_frames(frames),
                    wait=ObservedWait("consumer", call.caller.name),
                ),
                frames,
            )
