"""``BulkWriter``: large frames into a bulk socket, one after another, from the memory of the threads that send them.

A thread that may wait writes its own frame, after those before it, and returns when that has left. For a thread that must
not wait, such as an event loop's, the frame is copied, and the loop writes the copy whenever the socket has room.
"""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from ..ioloop import call_on_loop
from ..tls_socket import TlsSocket
from .helper import LOOK_SECONDS, HelperThread
from .transfer import Offer, Transfer


class BulkWriter:
    """Writes transfers and offers to a bulk socket. Any thread.

    Args:
        target: the socket.
        loop: writes what no thread waits for.
        broken: called with the error, in any thread, when the socket breaks.
    """

    def __init__(
        self, target: socket.socket | TlsSocket, loop: asyncio.AbstractEventLoop, broken: Callable[[Exception], object]
    ) -> None:
        self._target = target
        self._loop = loop
        self._broken = broken
        self._helper = HelperThread(loop)
        self._turn = threading.Lock()  # held by the thread that writes
        self._queue: deque[Transfer | Offer] = deque()
        self._closing = self._closed = False

    def send(self, item: Transfer | Offer, waits: bool) -> bool:
        """Send a transfer or an offer; its memory may change afterwards.

        Args:
            item: what to send.
            waits: this thread may wait until it has left. If it may not, a copy is sent.

        Returns:
            False if the socket is closed.
        """
        if self._closing:
            return False
        if not waits:
            item.copy()
        try:
            self._queue.append(item)
            self._write_or_wait(item)
        except BaseException:  # Ctrl-C, say
            item.abandon()
            self._let_go(item)
            raise
        finally:
            if self._queue:
                self._soon()
        return not self._closed

    def _write_or_wait(self, item: Transfer | Offer) -> None:
        if not isinstance(self._target, TlsSocket) or threading.current_thread() is not threading.main_thread():
            self._write_until(item)
            return
        # Signal handlers run in the main thread, and one in the middle of TLS would leave a record half known.
        self._helper.do(partial(self._write_until, item), lambda: item.released or self._closed)

    def _write_until(self, item: Transfer | Offer) -> None:
        while not (item.released or self._closed):
            self._in_turn(self._write, item)

    def _in_turn(self, action: Callable[[Transfer | Offer], object], item: Transfer | Offer) -> None:
        """Run an action while no other thread writes, if that is soon."""
        turns: list[bool] = []
        try:
            # In C as a whole: no signal handler can run between taking the lock and the note of it.
            turns.extend(map(self._turn.acquire, [True], [LOOK_SECONDS]))
            if turns[0]:
                action(item)
        finally:
            if turns and turns[0]:
                self._turn.release()

    def _write(self, last: Transfer | Offer) -> None:
        # turn held
        while self._queue and not last.released:
            try:
                self._write_first()
            except BlockingIOError:
                _wait_for_room(self._target)

    def _write_first(self) -> None:
        """Write as much of the first item as there is room for; drop it when it has left.

        Raises:
            BlockingIOError: there is no room.
        """
        # turn held
        item = self._queue[0]
        if item.withdrawn:
            item.release()
        try:
            if item.write(self._target):
                self._queue.popleft()
        except BlockingIOError:
            raise
        except OSError as error:
            self.close()
            self._broken(error)

    def _let_go(self, item: Transfer | Offer) -> None:
        """Wait until no thread writes from the memory of an item any more."""
        while not (item.released or self._closed):
            self._in_turn(lambda item: item.release(), item)

    # -- on the loop

    def _soon(self) -> None:
        try:
            call_on_loop(self._loop, self._write_on_loop)
        except RuntimeError:
            pass  # the loop is closed, and the connection with it

    def _write_on_loop(self) -> None:
        if self._closed:
            return
        if not self._turn.acquire(blocking=False):  # that thread calls ``_soon`` when it has written its own
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
        """Send what waits, and no more."""
        self._closing = True
        while self._queue and not self._closed:
            await asyncio.sleep(LOOK_SECONDS / 5)

    def close(self) -> None:
        """Send nothing any more, and let all threads go that wait."""
        self._closing = self._closed = True
        self._helper.close()
        for item in list(self._queue):
            item.released = True
        self._queue.clear()


def _wait_for_room(target: socket.socket | TlsSocket) -> None:
    poll = select.poll()
    try:
        poll.register(target, select.POLLOUT)
    except ValueError:
        return  # it was closed this instant
    poll.poll(LOOK_SECONDS * 1000)
