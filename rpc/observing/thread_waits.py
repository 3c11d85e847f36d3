"""Waits of a thread, read from its frames: a future, a lock, an item of a queue, an event, time, input.

Frames are read, and never changed. The program's objects are looked up in dictionaries and slots only: none of its code runs.
"""

from __future__ import annotations

import os
import queue
import re
import selectors
import socket
import subprocess
import sys
import threading
import time
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any

from ...core.futures import WAIT_CODE
from ..flow.flow import ROOM_CODE
from ..group.shutdown import SHUTDOWN_CODES
from .instructions import MISSING, Expression, attribute_of, entered, executed, look_up
from .records import ObservedFrame, ObservedWait

if TYPE_CHECKING:
    from ..wire.messages import Outgoing

PACKAGE = __name__.partition(".rpc.")[0]
HELD = {  # functions in which a debugger holds a thread, with their modules: of a prompt, and of an IDE
    "read_line": f"{PACKAGE}.rpc.debugging.stop",
    "_do_wait_suspend": "pydevd",
}
DEBUGPY = ("debugpy", "pydevd", "_pydevd_bundle", "_pydev_bundle", "_pydevd_frame_eval", "pydevd_tracing")
NOT_THE_PROGRAMS = {PACKAGE, "numpy", "grpc", *DEBUGPY, *sys.stdlib_module_names} - {"__main__"}
WaitOf = Callable[[FrameType], ObservedWait]
NO_LAYERS: Mapping[CodeType, WaitOf] = MappingProxyType({})
RUN_CODE = BaseEventLoop.run_forever.__code__
MOST_FRAMES = 100
LOCK, RLOCK = type(threading.Lock()), type(threading.RLock())
OWNER = re.compile(r"owner=(\d+)")
LIBRARY: dict[CodeType, str] = {
    RUN_CODE: "loop",
    queue.Queue.get.__code__: "queue",
    queue.Queue.put.__code__: "queue",
    queue.Queue.join.__code__: "queue",
    threading.Event.wait.__code__: "event",
    threading.Thread.join.__code__: "thread",
    threading.Barrier.wait.__code__: "condition",
    threading.Semaphore.acquire.__code__: "condition",
    threading.Condition.wait.__code__: "condition",
    subprocess.Popen.wait.__code__: "process",
    selectors.SelectSelector.select.__code__: "socket",
    selectors.PollSelector.select.__code__: "socket",
    selectors.EpollSelector.select.__code__: "socket",
    socket.socket.accept.__code__: "socket",
    socket.SocketIO.readinto.__code__: "socket",
}
C_METHODS = {
    (LOCK, "acquire"): "lock",
    (LOCK, "__enter__"): "lock",
    (RLOCK, "acquire"): "lock",
    (RLOCK, "__enter__"): "lock",
    (queue.SimpleQueue, "get"): "queue",
}
SOCKET_METHODS = ("accept", "connect", "recv", "recv_into", "recvfrom", "recvmsg", "send", "sendall", "sendmsg")
C_FUNCTIONS = {id(time.sleep): "sleep", id(input): "socket", id(os.read): "socket", id(os.write): "output"}


def frames_of(innermost: FrameType | None) -> Iterator[FrameType]:
    """Return the frames of a thread, ``MOST_FRAMES`` at most, from one outwards."""
    for _ in range(MOST_FRAMES):
        if innermost is None:
            return
        yield innermost
        innermost = innermost.f_back


def place_of_frames(frames: Iterable[FrameType]) -> ObservedFrame | None:
    """Return the innermost frame of the program's own code.

    Args:
        frames: of a thread, the innermost first.
    """
    frame = next((each for each in frames if is_programs(each)), None)
    return None if frame is None else observed(frame)


def observed(frame: FrameType) -> ObservedFrame:
    """Return the record of a frame."""
    return ObservedFrame(frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name)


def is_programs(frame: FrameType) -> bool:
    """Return whether a frame runs the program's own code, not that of this package, NumPy, gRPC or the standard library."""
    module = dict.get(frame.f_globals, "__name__")
    if type(module) is not str:
        return True
    return module.partition(".")[0] not in NOT_THE_PROGRAMS or module.startswith(f"{PACKAGE}.examples.")


def wait_of(
    frames: Sequence[FrameType],
    awaited: Mapping[int, list[int]],
    agent: object,
    layers: Mapping[CodeType, WaitOf] = NO_LAYERS,
) -> ObservedWait | None:
    """Return what a thread waits for; None if it computes, or its frames do not tell.

    Args:
        frames: of the thread, the innermost first.
        awaited: ids of the calls that complete a future, by its ``id``.
        agent: the agent whose worker is observed.
        layers: by code of a function of a layer above, what a thread waits for that is in it.
    """
    for frame in frames:
        code = frame.f_code
        if code.co_name in HELD and dict.get(frame.f_globals, "__name__") == HELD[code.co_name]:
            return ObservedWait("debugger")
        if (told := layers.get(code)) is not None:
            return told(frame)
        if code in SHUTDOWN_CODES:
            here = _agent_of(frame) is agent
            return ObservedWait("shutdown" if here else "future")
    future = next((each.f_locals["self"] for each in frames if each.f_code is WAIT_CODE), None)
    if future is not None:
        if (
            message := next((each.f_locals["message"] for each in frames if each.f_code is ROOM_CODE), None)
        ) is not None:
            return _room(message, agent)
        return ObservedWait("future", calls=awaited.get(id(future), []))
    return _library_wait(frames) or _c_wait(frames)


def _agent_of(frame: FrameType) -> object:
    here = frame.f_locals
    return here["agent"] if "agent" in here else here["self"].agent


def _room(message: Outgoing, agent: Any) -> ObservedWait:
    """Return the wait for room for a message: for its call, or for an answer."""
    mine = agent.caller.table.calls.get(message.call_id) is message
    number = message.to if message.session is None else message.session.number
    return ObservedWait("window", agent.peers.name(number), calls=[message.call_id] if mine else [])


def _library_wait(frames: Sequence[FrameType]) -> ObservedWait | None:
    """Return the wait in a function of the standard library; the one that the program called counts."""
    inner = frames[: next((index for index, each in enumerate(frames) if is_programs(each)), len(frames))]
    for frame in reversed(inner):
        if (kind := LIBRARY.get(frame.f_code)) is not None:
            thread = attribute_of(frame.f_locals.get("self"), "_ident") if kind == "thread" else 0
            return ObservedWait(kind, _name(frames, len(inner)), thread=thread if type(thread) is int else 0)
    return None


def _name(frames: Sequence[FrameType], index: int) -> str:
    """Return the name of the object whose method a frame calls."""
    if index >= len(frames):
        return ""
    done = executed(frames[index].f_code, frames[index].f_lasti)
    return "" if done is None else str(_object(done.enters, done.expression))


def _object(enters: bool, expression: Expression) -> Expression:
    return expression if enters else Expression(expression.base, expression.attributes[:-1])


def _c_wait(frames: Sequence[FrameType]) -> ObservedWait | None:
    """Return the wait of the innermost frame in a function in C."""
    frame = frames[0]
    done = executed(frame.f_code, frame.f_lasti)
    if done is None:
        return None
    method = "__enter__" if done.enters else (done.expression.attributes or ("",))[-1]
    if not done.enters and (kind := C_FUNCTIONS.get(id(look_up(frame, done.expression)))):
        return ObservedWait(kind)
    owner = _object(done.enters, done.expression)
    target = look_up(frame, owner)
    if kind := C_METHODS.get((type(target), method)):
        outer = _name(frames, next((index for index, each in enumerate(frames) if is_programs(each)), 0))
        return (
            _lock(target, str(owner) if is_programs(frame) else outer)
            if kind == "lock"
            else ObservedWait(kind, str(owner))
        )
    if method in SOCKET_METHODS and issubclass(type(target), socket.SocketType):
        return ObservedWait("socket", str(owner))
    return None


def _lock(lock: Any, name: str) -> ObservedWait | None:
    owner = OWNER.search(repr(lock)) if type(lock) is RLOCK else None
    if type(lock) is LOCK and not lock.locked():
        return None
    return ObservedWait("lock", name, object=id(lock), thread=int(owner[1]) if owner else 0)


def held_locks(frames: Sequence[FrameType], wanted: frozenset[int]) -> list[int]:
    """Return the numbers of locks in whose ``with`` statements frames are suspended.

    Args:
        frames: of a thread, a coroutine or a generator.
        wanted: numbers of the locks to look for.
    """
    found = []
    for frame in frames:
        for expression in entered(frame.f_code, frame.f_lasti):
            lock = look_up(frame, expression)
            if type(lock) is threading.Condition:
                lock = attribute_of(lock, "_lock")
            if lock is not MISSING and id(lock) in wanted:
                found.append(id(lock))
    return found
