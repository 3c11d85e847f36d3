"""Threads of this process: their stacks, and the calls and requests that they wait for and serve.

A thread that waits has the frame of ``Future.wait`` on its stack, with the future; one that serves a request has the frame of
``ServerCall``. So calls cost nothing for being observed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from ...core.futures import WAIT_CODE
from ..calls.server_call import SERVE_CODE
from ..wire.messages import Method
from .records import MOST_CHARACTERS, MOST_ROWS, ObservedFrame, ObservedThread

if TYPE_CHECKING:
    from ..calls.dispatch import PendingCall

MOST_FRAMES = 100
QUESTIONS = {Method.EXPLAIN, Method.OBSERVE}  # requests that are not the program's: a reader's thread answers them


def observe_threads(calls: dict[int, PendingCall]) -> list[ObservedThread]:
    """Return the threads of this process.

    Args:
        calls: the calls under way, by the ``id`` of their futures.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = list(sys._current_frames().items())[:MOST_ROWS]
    return [_thread(ident, names.get(ident, "not of Python"), frame, calls) for ident, frame in frames]


def _thread(ident: int, name: str, innermost: FrameType, calls: dict[int, PendingCall]) -> ObservedThread:
    frames = list(_frames(innermost))
    future = next(_locals(frames, WAIT_CODE), None)
    request = next((each for each in _locals(frames, SERVE_CODE) if each.method not in QUESTIONS), None)
    call = calls.get(id(future))
    return ObservedThread(
        ident,
        name[:MOST_CHARACTERS],
        [ObservedFrame(each.f_code.co_filename, each.f_lineno or 0, each.f_code.co_name) for each in reversed(frames)],
        future is not None,
        None if call is None else call.call_id,
        [] if request is None else list(request.key),
    )


def _frames(innermost: FrameType) -> Iterator[FrameType]:
    frame: FrameType | None = innermost
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _locals(frames: list[FrameType], code: object) -> Iterator[Any]:
    """Return ``self`` of each frame that runs a method, the innermost first."""
    return (frame.f_locals["self"] for frame in frames if frame.f_code is code)
