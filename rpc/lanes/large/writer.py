"""``BulkWriter``: writes large frames to a bulk socket or a gRPC stream, one after another, from the memory of their senders.

A thread that may wait writes its own frame, after those before it, and returns when its frame has left. For a thread that
must not wait, such as an event loop's, the frame is copied, and the loop writes the copy whenever there is room.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ....core.futures import raised_by_handler, shield
from ...threads.ioloop import call_if_open
from .transfer import UnitTarget

if TYPE_CHECKING:
    from ..frame import FrameHandle
    from .transfer import Offer, Transfer

LOOK_SECONDS = 0.05  # a thread that waits checks so often whether it must still wait


class UnitMemoryError(MemoryError):
    """Error: a target has no memory for a unit, of which nothing has left. The transfer is withdrawn."""


class BulkTarget(UnitTarget, Protocol):
    """Socket or stream that takes units, and tells when it has room. Its methods are those of ``StreamSocket``.

    Attributes:
        full: it had no room a moment ago, so that it is useless to try.
    """

    @property
    def full(self) -> bool: ...

    def wait_for_room(self, seconds: float) -> object:
        """Block until there is room, for ``seconds`` at most."""

    def call_when_room(self, loop: asyncio.AbstractEventLoop, action: Callable[[], object]) -> None:
        """Call an action when there is room, until ``forget_room``. On the loop."""

    def forget_room(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch for room no longer. On the loop."""


class BulkWriter:
    """Writes transfers and offers to a bulk socket or a gRPC stream. For any thread.

    Args:
        target: the socket, or the stream.
        loop: writes the items for which no thread waits.
        broken: called with the error, in any thread, when the target breaks.
    """

    def __init__(
        self, target: BulkTarget, loop: asyncio.AbstractEventLoop, broken: Callable[[Exception], object]
    ) -> None:
        self._target = target
        self._loop = loop
        self._broken = broken
        self._turn = threading.RLock()  # held by the thread that writes; only that one can release it
        self._writes_here = (
            0  # the thread that is in the middle of a write, or was when a signal handler interrupted it
        )
        self._queue: deque[Transfer | Offer] = deque()
        self._closing = self._closed = False

    def send(self, item: Transfer | Offer, waits: bool) -> bool:
        """Send a transfer or an offer. Its memory may change afterwards.

        Args:
            item: the transfer or the offer.
            waits: this thread may wait until the item has left. If it may not, a copy is sent.

        Returns:
            False if the socket was closed before all of it had left: the receiver drops what it has of it.
        """
        if self._closing:
            return not item.take_back()
        if not waits:
            item.copy()
        waited = False
        try:
            self._queue.append(item)
            self._write_until(item)
            waited = True
        finally:
            if not waited:  # Ctrl-C ended the wait, or a signal handler has raised something
                self._abandon(item)
            if self._closed:
                self._queue.clear()  # it may have closed just before the item was added
            elif not waits or self._loop_writes_next():
                self._soon()
        return not (self._closed and self._take_back(item))

    def _write_until(self, item: Transfer | Offer) -> None:
        while not (item.released or self._closed):
            if shield.noted:
                shield.deliver()
            self._in_turn(self._write, item)

    def _in_turn(self, action: Callable[..., object], *args: Any) -> None:
        """Call ``action(*args)`` with the turn, if this thread gets it in a moment."""
        try:
            if self._turn.acquire(timeout=LOOK_SECONDS):
                action(*args)
        finally:
            # A signal handler may raise something just after this thread has got the turn, which all others wait for.
            try:
                self._turn.release()
            except RuntimeError as error:  # it has not got it
                if raised_by_handler(error):
                    raise

    def _abandon(self, item: Transfer | Offer) -> None:
        """Send no more of an item, and release its memory, after waiting until no thread writes from it."""
        if self._writes_here == threading.get_ident():  # it is unknown how much has left
            self._writes_here = 0
            self.close()
            self._broken(ConnectionResetError("a thread was interrupted while it wrote to the socket"))
        item.abandon()
        while not (item.released or self._closed):
            self._in_turn(item.release)

    def _take_back(self, item: Transfer | Offer) -> bool:
        """Count an item as not sent, after the end; return False if all of it has left, or it was withdrawn."""
        taken: list[bool] = []
        while not taken:  # a thread may be in its last write, which may be the item's last one too
            self._in_turn(lambda: taken.append(item.take_back()))
        return taken[0]

    def _write(self, last: Transfer | Offer) -> None:
        # turn held
        # In the main thread signal handlers run, which may raise: there only a wait for room is no part of a write.
        waits = threading.get_ident() != threading.main_thread().ident
        while self._queue and not last.released:
            if self._target.full:
                self._target.wait_for_room(LOOK_SECONDS)
            try:
                self._write_first(waits)
            except BlockingIOError:
                self._target.wait_for_room(LOOK_SECONDS)

    def _write_first(self, waits: bool) -> None:
        """Write the first item as far as there is room, and remove it from the queue when it has left.

        Args:
            waits: the target may wait for room.

        Raises:
            BlockingIOError: there is no room.
            UnitMemoryError: there is no memory for its next unit.
        """
        # turn held
        try:
            item = self._queue[0]
            if item.withdrawn:
                item.release()
            self._writes_here = threading.get_ident()
            if item.write(self._target, waits):
                self._queue.popleft()
        except IndexError:
            if not self._closed:  # else the loop, which needs no turn to close, has emptied the queue meanwhile
                raise
        except (BlockingIOError, UnitMemoryError):
            self._writes_here = 0
            raise
        except OSError as error:
            if raised_by_handler(error):
                raise
            self.close()
            self._broken(error)
        self._writes_here = 0

    def _loop_writes_next(self) -> bool:
        """Return whether items are left and no thread waits for any: such a thread writes those before its own one, too."""
        items = list(self._queue)
        return bool(items) and all(item.released for item in items)

    # -- on the loop

    def _soon(self) -> None:
        call_if_open(self._loop, self._write_on_loop)

    def _write_on_loop(self) -> None:
        if self._closed:
            return
        if not self._turn.acquire(blocking=False):  # a thread writes, and calls ``_soon`` when it has written its item
            self._target.forget_room(self._loop)
            return
        try:
            while self._queue:
                self._write_first(waits=False)
        except BlockingIOError:
            self._target.call_when_room(self._loop, self._write_on_loop)
        except UnitMemoryError as error:  # no thread waits for it that could hear of it
            self.close()
            self._broken(error)
        else:
            self._target.forget_room(self._loop)
        finally:
            self._turn.release()

    async def finish(self) -> None:
        """Send the items that wait, and take no more."""
        self._closing = True
        while self._queue and not self._closed:
            await asyncio.sleep(LOOK_SECONDS / 5)

    def close(self) -> None:
        """Stop sending, and let the threads that wait go on."""
        self.take_waiting()

    def take_waiting(self) -> list[Transfer | Offer]:
        """Close, and return the items that waited."""
        self._closing = self._closed = True
        items = list(self._queue)
        for item in items:
            item.released = True
        self._queue.clear()
        return items

    def take_unsent(self) -> list[tuple[bytes, FrameHandle | None] | None]:
        """Close, and return the frames that waited (``Transfer.take_unsent``)."""
        items = self.take_waiting()
        with self._turn:  # a thread may be writing one of them
            return [item.take_unsent() for item in items]
