"""Coroutines and generators that are suspended: they wait, and no thread has their frames."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any

from ...core.futures import Future
from ..functions.producing import Producers
from ..threads.coroutines import RUNNER_CODE
from .completions import keys_of_requests
from .records import MOST_CHARACTERS, ObservedThread, ObservedWait
from .thread_waits import RUN_CODE, observed, place_of_frames

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


def tasks_of_loops(stacks: Iterable[tuple[int, list[FrameType]]]) -> Iterator[tuple[int, asyncio.Task[Any]]]:
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


def frames_of(suspended: Any) -> list[FrameType]:
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


def observe_task(
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


def observe_generators(agent: Any) -> Iterator[tuple[ObservedThread, list[FrameType]]]:
    """Return the record and the frames of each generator that makes items for another worker and waits until it asks for one.

    Args:
        agent: the worker's agent.
    """
    for call, iterator in agent.part(Producers).suspended():
        if frames := frames_of(iterator):
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
