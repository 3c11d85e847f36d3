"""``BulkReader``: reads large frames from a bulk socket, straight into their final memory, and offers of segments.

A thread reads while there is something to read, because it can wait in the kernel and nothing waits for it. When
nothing has come for a while, the thread ends and the loop watches the socket.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...threads.ioloop import call_if_open
from .transfer import DESCRIPTOR, UNIT_HEAD, Kind

if TYPE_CHECKING:
    from ..stream_socket import StreamSocket
    from .incoming import TransferAssembly

logger = logging.getLogger("telegrad.rpc")
LINGER_SECONDS = 1.0  # the thread waits so long for the next transfer, and then ends
READER_RETRY_SECONDS = 0.2  # until the thread is started again, if the system has given none
GIVE_UP_SECONDS = 10.0  # the session ends if the system gives no thread for so long
Offered = Callable[[int, "int | None"], object]
Ended = Callable[["Exception | None"], object]


class BulkReader:
    """Reads transfers and offers from a bulk socket. Made on the loop.

    Args:
        source: the socket.
        loop: watches the socket while nothing comes.
        assembly: gets the units of transfers, in the thread that reads, and delivers their frames there.
        offered: gets the number of an offered segment, and its descriptor, ``None`` if the system had none to give.
        ended: called once, in any thread: with ``None`` when the peer has ended its side, or with the error.
    """

    def __init__(
        self,
        source: StreamSocket,
        loop: asyncio.AbstractEventLoop,
        assembly: TransferAssembly,
        offered: Offered,
        ended: Ended,
    ) -> None:
        self._source = source
        self._loop = loop
        self._assembly = assembly
        self._offered = offered
        self._ended = ended
        self._closed = False
        self._latest: float | None = None  # when the session ends, if the system still gives no thread then
        self._rights = socket.CMSG_SPACE(DESCRIPTOR.size) if source.family == socket.AF_UNIX else 0
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._watch()

    def close(self) -> None:
        """Stop reading. On the loop, before the socket is shut down and closed."""
        self._closed = True
        self._loop.remove_reader(self._source)

    def _watch(self) -> None:
        if self._closed:
            return
        if self._source.holds_back:
            self._start()
        else:
            self._loop.add_reader(self._source, self._wake)

    def _wake(self) -> None:
        self._loop.remove_reader(self._source)
        self._start()

    def _start(self) -> None:
        try:
            threading.Thread(target=self._run, name="telegrad-bulk", daemon=True).start()
            self._latest = None
        except RuntimeError as error:
            self._start_later(error)

    def _start_later(self, error: RuntimeError) -> None:
        """Try again in a while: the system has refused a thread, as it does under a limit of memory."""
        now = time.monotonic()
        if self._latest is None:
            self._latest = now + GIVE_UP_SECONDS
            logger.warning("no thread can be started to read large frames (%s); it is tried again", error)
        if now < self._latest:
            self._loop.call_later(READER_RETRY_SECONDS, self._watch)
        else:
            seconds = f"{GIVE_UP_SECONDS:g} s"
            self._ended(MemoryError(f"the system has given no thread to read large frames for {seconds}"))

    def _run(self) -> None:
        try:
            while not self._closed and (self._source.holds_back or self._poll.poll(LINGER_SECONDS * 1000)):
                self._read_item()
        except EOFError:
            self._end(None)
        except Exception as error:
            self._end(error)
        else:
            call_if_open(self._loop, self._watch)

    def _end(self, error: Exception | None) -> None:
        self._assembly.drop()  # its memory may be as much as the rest of the process has
        self._ended(error)

    def _read_item(self) -> None:
        """Read an offer, or a whole transfer."""
        self._read_unit()
        while self._assembly.under_way:
            self._read_unit()

    def _read_unit(self) -> None:
        kind, size, descriptors = self._head()
        if kind == Kind.OFFER:
            self._offered(size, descriptors[0] if descriptors else None)
            if not self._assembly.under_way:
                return
        room = self._assembly.unit(kind, size)
        while room is not None:
            room = self._assembly.filled(self._receive(room))

    def _receive(self, memory: memoryview) -> int:
        while True:
            try:
                landing = self._assembly.landing
                count = self._source.recv_whole(memory) if landing is None else landing.receive(self._source, memory)
            except BlockingIOError:
                self._wait()
                continue
            if not count:
                raise EOFError
            return count

    def _wait(self) -> None:
        if self._closed:
            raise EOFError
        # With a limit: if the socket is closed at this moment, another one may get its descriptor.
        self._poll.poll(LINGER_SECONDS * 1000)

    def _head(self) -> tuple[int, int, list[int]]:
        """Read a unit's header, and return its two fields and the descriptors that came with it."""
        data = b""
        descriptors: list[int] = []
        while len(data) < UNIT_HEAD.size:
            try:
                piece, ancillary, _, _ = self._source.recvmsg(
                    UNIT_HEAD.size - len(data), self._rights, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                self._wait()
                continue
            if not piece:
                raise EOFError
            data += piece
            descriptors += [DESCRIPTOR.unpack(sent[: DESCRIPTOR.size])[0] for _, _, sent in ancillary]
        kind, size = UNIT_HEAD.unpack(data)
        return kind, size, descriptors
