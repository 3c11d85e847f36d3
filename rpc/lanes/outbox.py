"""Queue of frames that wait for a gRPC stream: filled from any thread without blocking, which writes them itself if it can.

Until a frame has left, any thread may take it back. The units of large frames are in it as messages of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ...base.errors import SerializationError
from ...core.futures import raised_by_handler
from ..threads.ioloop import call_if_open
from .frame import BATCH_BYTES, FRAME_LENGTH

Write = Callable[[bytes], Coroutine[Any, Any, Any]]


class Outbox:
    """Queue of items from many threads, which the threads that add them write to a gRPC stream.

    gRPC takes the next message of a stream when the one before has left. So a thread writes what waits if nothing is being
    written; else the loop writes it, all together, when it hears that the message has left.

    Args:
        loop: the stream's.
        take: takes one message's worth of items out of the queue and returns the message; empty if there is none.
        interrupted: called if a signal handler raises something while its thread begins to write: the stream will end.

    Attributes:
        items: those that wait, to be looked at only.
        write: writes a message to the stream; ``None`` while there is no stream.
    """

    write: Write | None

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[deque[Any]], bytes],
        interrupted: Callable[[], object] = lambda: None,
    ) -> None:
        self._loop = loop
        self._take = take
        self._interrupted = interrupted
        self.items: deque[Any] = deque()
        self.write = None
        self._lock = threading.Lock()
        self._busy = False  # a message is being written; nothing is after an error, or after the end
        self._ends = False  # there will be no more items
        self._writing: Coroutine[Any, Any, Any] | None = None
        self._over: asyncio.Future[None] | None = None

    def put(self, item: Any) -> None:
        """Add an item. Any thread."""
        self.items.append(item)
        if self._loop.get_debug():  # asyncio then refuses callbacks that other threads give to its futures
            call_if_open(self._loop, self._leave)
        else:
            self._leave()

    def end(self) -> None:
        """End the stream after the last item. Any thread."""
        self._ends = True
        call_if_open(self._loop, self._leave)

    def break_off(self) -> None:
        """End the stream in the middle: it is unknown what of it has left. Any thread."""
        call_if_open(self._loop, self._give_up)

    async def write_to(self, write: Write) -> None:
        """Let items leave by a stream's ``write`` from now on, until the end. On the loop."""
        self._over = self._loop.create_future()
        self.write = write
        try:
            self._leave()
            await self._over
        finally:
            self.write = None

    def take_all(self) -> list[Any]:
        """Return all items, and keep none."""
        with self._lock:  # a thread that takes them for a message has looked how many there are
            items = list(self.items)
            self.items.clear()
        return items

    def _leave(self) -> None:
        """Write the next message, unless one is being written."""
        with self._lock:
            while (self.items or self._ends) and not self._busy and (write := self.write) is not None:
                self._busy, written = True, False
                try:
                    self._write_next(write)
                    written = True
                except MemoryError as error:
                    written = True
                    self._end(error)
                    raise
                finally:
                    if not written:  # a signal handler has raised something
                        self._interrupted()
                        self.break_off()

    def _write_next(self, write: Write) -> None:
        # lock held
        if not self.items:
            self._end(None)
        elif message := self._take(self.items):
            self._writing = write(message)
            self._step()
        else:
            self._busy = False

    def _step(self) -> None:
        """Run a write up to where it waits for gRPC, or to its end. gRPC starts it from any thread."""
        writing = self._writing
        assert writing is not None, "it is only dropped after this"
        try:
            left: asyncio.Future[Any] = writing.send(None)
        except StopIteration:
            self._writing, self._busy = None, False
        except asyncio.CancelledError:  # gRPC says so if the stream was cancelled meanwhile
            self._end(ConnectionResetError("the stream was cancelled"))
        except Exception as error:
            if raised_by_handler(error):
                raise
            self._end(error)
        else:
            left.add_done_callback(self._go_on)
            if left.done():  # meanwhile, maybe: then the loop may sleep, and know nothing of the callback
                call_if_open(self._loop, _do_nothing)

    def _give_up(self) -> None:
        """End the stream: a thread was interrupted as it began to write, and it is unknown whether gRPC has the message."""
        if self._writing is not None:
            self._writing.close()
        self._tell(ConnectionResetError("a thread was interrupted while it wrote to the stream"))

    def _go_on(self, _: object) -> None:
        """Write the next message when one has left. On the loop."""
        try:
            self._step()
            self._leave()
        except Exception as error:  # no memory for the next one, say
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        call_if_open(self._loop, self._tell, error)

    def _tell(self, error: Exception | None) -> None:
        if self._over is None or self._over.done():
            return
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)


def _do_nothing() -> None:
    """Wake the loop."""


def next_batch(items: deque[Any]) -> bytes:
    """Take small frames out of ``items``, up to a limit, and return them as one stream message."""
    pieces: list[bytes] = []
    size = 0
    while items and size <= BATCH_BYTES:
        if (frame := items.popleft().take()) is not None:
            pieces += (FRAME_LENGTH.pack(len(frame)), frame)
            size += len(frame)
    return b"".join(pieces)


def split_batch(batch: bytes) -> Iterator[bytes]:
    """Yield the frames of one stream message.

    Raises:
        SerializationError: it is none.
    """
    position = 0
    while position < len(batch):
        start = position + FRAME_LENGTH.size
        position = start + (FRAME_LENGTH.unpack_from(batch, position)[0] if start <= len(batch) else len(batch))
        if position > len(batch):
            raise SerializationError("a batch of frames ends in the middle of one")
        yield batch[start:position]
