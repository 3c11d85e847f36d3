"""``BulkWriter``: writes large frames to a bulk socket, one after another, from the memory of the threads that send them.

A thread that may wait writes its own frame, after those before it, and returns when its frame has left. For a thread that
must not wait, such as an event loop's, the frame is copied, and the loop writes the copy whenever the socket has room.
"""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ....core.futures import opens, raised_by_handler, shield
from ...threads.ioloop import call_on_loop

if TYPE_CHECKING:
    from ..tls_socket import TlsSocket
    from .transfer import Offer, Transfer

LOOK_SECONDS = 0.05  # a thread that waits checks so often whether it must still wait


class BulkWriter:
    """Writes transfers and offers to a bulk socket. For any thread.

    Args:
        target: the socket.
        loop: writes the items for which no thread waits.
        broken: called with the error, in any thread, when the socket breaks.
    """

    def __init__(
        self, target: socket.socket | TlsSocket, loop: asyncio.AbstractEventLoop, broken: Callable[[Exception], object]
    ) -> None:
        self._target = target
        self._loop = loop
        self._broken = broken
        self._turn = threading.Lock()  # held by the thread that writes
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
            elif self._queue:
                self._soon()
        return not (self._closed and self._take_back(item))

    def _write_until(self, item: Transfer | Offer) -> None:
        while not (item.released or self._closed):
            if shield.noted:
                shield.deliver()
            self._in_turn(self._write, item)

    def _abandon(self, item: Transfer | Offer) -> None:
        """Send no more of an item, and release its memory, after waiting until no thread writes from it."""
        if self._writes_here == threading.get_ident():  # it is unknown how much has left
            self._writes_here = 0
            self.close()
            self._broken(ConnectionResetError("a thread was interrupted while it wrote to the socket"))
        item.abandon()
        while not (item.released or self._closed):
            self._in_turn(lambda item: item.release(), item)

    def _take_back(self, item: Transfer | Offer) -> bool:
        """Count an item as not sent, after the end; return False if all of it has left, or it was withdrawn."""
        while not self._turn.acquire(timeout=LOOK_SECONDS):
            pass  # a thread is in its last write, which may be the item's last one too
        try:
            return item.take_back()
        finally:
            self._turn.release()

    def _in_turn(self, action: Callable[[Transfer | Offer], object], item: Transfer | Offer) -> None:
        """Run an action while no other thread writes; do nothing if another thread writes for ``LOOK_SECONDS``."""
        if self._turn.acquire(timeout=LOOK_SECONDS):
            try:
                action(item)
            finally:
                self._turn.release()

    def _write(self, last: Transfer | Offer) -> None:
        # turn held
        while self._queue and not last.released:
            try:
                self._write_first()
            except BlockingIOError:
                _wait_for_room(self._target)

    def _write_first(self) -> None:
        """Write the first item as far as there is room, and remove it from the queue when it has left.

        Raises:
            BlockingIOError: the socket has no room.
        """
        # turn held
        try:
            item = self._queue[0]
            if item.withdrawn:
                item.release()
            self._writes_here = threading.get_ident()
            if item.write(self._target):
                self._queue.popleft()
        except IndexError:
            if not self._closed:  # else the loop, which needs no turn to close, has emptied the queue meanwhile
                raise
        except BlockingIOError:
            self._writes_here = 0
            raise
        except OSError as error:
            if raised_by_handler(error):
                raise
            self.close()
            self._broken(error)
        self._writes_here = 0

    # -- on the loop

    def _soon(self) -> None:
        try:
            call_on_loop(self._loop, self._write_on_loop)
        except RuntimeError:
            pass  # the loop is closed, and the connection with it

    def _write_on_loop(self) -> None:
        if self._closed:
            return
        if not self._turn.acquire(blocking=False):  # a thread writes, and calls ``_soon`` when it has written its item
            self._loop.remove_writer(self._target)
            return
        try:
            while self._queue:
                self._write_first()
        except BlockingIOError:
            self._loop.add_writer(self._target, self._write_on_loop)
        else:
            self._loop.remove_writer(self._target)
        finally:
            self._turn.release()

    async def finish(self) -> None:
        """Send the items that wait, and take no more."""
        self._closing = True
        while self._queue and not self._closed:
            await asyncio.sleep(LOOK_SECONDS / 5)

    def close(self) -> None:
        """Stop sending, and let the threads that wait go on."""
        self._closing = self._closed = True
        for item in list(self._queue):
            item.released = True
        self._queue.clear()


@opens
def _wait_for_room(target: socket.socket | TlsSocket) -> None:
    if shield.noted:
        shield.deliver()
    poll = select.poll()
    try:
        poll.register(target, select.POLLOUT)
    except ValueError:
        return  # it was closed at this moment
    poll.poll(LOOK_SECONDS * 1000)
