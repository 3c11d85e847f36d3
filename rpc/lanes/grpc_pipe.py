"""``GrpcPipe``: small frames on a bidirectional gRPC stream, several per message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from .frame import FrameHandle, WaitingFrame
from .outbox import Outbox, Write, next_batch
from .pipe import Pipe


class GrpcPipe(Pipe):
    """Small frames on a gRPC stream.

    Args:
        loop: loop of the lane.
        interrupted: called if a signal handler raises something while its thread writes: the stream will end.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, interrupted: Callable[[], object]) -> None:
        self._outbox = Outbox(loop, next_batch, interrupted)
        self._closed = False

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        frame = WaitingFrame(b"".join(parts), handle)
        self._outbox.put(frame)
        return not (self._closed and _came_late(frame, handle))

    def add(self, frames: Iterable[WaitingFrame]) -> None:
        for frame in frames:
            self._outbox.put(frame)

    def end(self) -> None:
        """End this side after the frames that wait. Any thread."""
        self._outbox.end()

    async def write_to(self, write: Write) -> None:
        """Let frames leave by a stream's ``write`` from now on, until the end. On the loop."""
        await self._outbox.write_to(write)

    def close(self) -> None:
        self._closed = True
        self._outbox.take_all()


def _came_late(frame: WaitingFrame, handle: FrameHandle | None) -> bool:
    """Take back a frame that its pipe does not send any more; return False if it has left, or was taken or withdrawn."""
    late = frame.withdraw()
    if late and handle is not None:
        handle.given_back()
    return late
