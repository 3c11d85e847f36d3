"""``LargePipe``: large frames of one session, beside the socket of its small frames.

They have a socket of their own, the bulk socket. On one host, large parts of a
frame are written into shared segments, and the small rest, the front, travels as a small frame. Parts without a segment go
through the bulk socket. If they are many bytes, the front goes with them, so that a small frame never waits behind a large
one.

``lender.py`` and ``borrower.py`` are the two sides of segments, ``writer.py`` and ``reader.py`` those of the bulk socket.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...call_states import ADMITTED
from ...threads.ioloop import call_if_open, may_block
from ...threads.timers import every
from ..frame import BULK_BYTES, SCATTERED, FrameHandle, Loan
from ..pipe import Pipe
from .arrival import Arrival
from .borrower import Borrower
from .chunk_size import ChunkSize
from .heap import HEAP
from .incoming import TransferAssembly
from .landing import FindLanding, no_landing
from .lender import IDLE_SECONDS, Lender
from .reader import BulkReader
from .scattered import NO_SEGMENT, FramePiece, Notices, decode_table, encode_table
from .transfer import Offer, Transfer
from .writer import BulkWriter

if TYPE_CHECKING:
    from ....core.shared_memory import Segment
    from ..stream_socket import StreamSocket
    from .resources import Resources

SEGMENT_BYTES = 64 * 1024  # larger parts go into a segment; for smaller ones a copy through the socket costs less
PIECE_BYTES = 4 * 1024  # larger parts get memory of their own at the receiver
INLINE_BYTES = BULK_BYTES - 16 * 1024  # a smaller front travels as a small frame, with its table
RETURN_SECONDS = 0.005  # a returned segment waits so long, or twice as long, for a frame that can carry its number
SYSTEM_WAIT_SECONDS = 0.1  # a read or a write of the bulk socket waits so long; then it is looked whether it goes on
SendSmall = Callable[[list[Any], int, "FrameHandle | None"], bool]
Deliver = Callable[[Any], object]


class LargePipe(Pipe):
    """Large frames of one session. Made on the loop; any thread sends.

    Args:
        bulk: the bulk socket; it belongs to this object from now on.
        send_small: sends a small frame: gets its parts, their length in bytes, and its handle.
        deliver: gets each frame that arrives. The frame's memory is writable, and nothing else uses it.
        resources: the lane's memory for large frames.
        expect: called with the size of each frame that is sent: its answer takes longer than others.
        find: as for ``Arrival``.
    """

    least = SEGMENT_BYTES
    over: asyncio.Future[Exception | None]

    def __init__(
        self,
        bulk: StreamSocket,
        send_small: SendSmall,
        deliver: Deliver,
        resources: Resources,
        expect: Callable[[int], object],
        find: FindLanding = no_landing,
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self.over = loop.create_future()
        self._expect = expect
        self._find = find
        self._bulk = bulk
        self._send_small = send_small
        self._deliver = deliver
        self._closed = False
        bulk.let_wait(SYSTEM_WAIT_SECONDS)
        self._shares_memory = bulk.family == socket.AF_UNIX
        self._buffers = resources.buffers
        self._chunk = ChunkSize()
        self._lender = Lender(resources.lending)
        self._borrower = Borrower(resources.borrowing, self._wake)
        self._writer = BulkWriter(bulk, loop, self._end)
        assembly = TransferAssembly(self._buffers.take, deliver, self._begin)
        self._reader = BulkReader(bulk, loop, assembly, self._offered, self._end)
        self._returning = False  # a flush of returned segments is due
        self._told = False  # a frame has told the peer of returned segments since the last look
        self._trimmer = every(IDLE_SECONDS, self._trim, self._loop)

    # -- sending

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        self._expect(size)
        loans: dict[int, int] = {}  # by place of the part: number of its segment
        undo: Callable[[], object] | None = None
        sent = None
        try:
            missed, rest = self._lend(parts, size, loans)
            inline = rest <= INLINE_BYTES
            scattered = _scatter(parts, loans, rest if inline else PIECE_BYTES)
            notices = self._notices() if inline else Notices()
            undo = partial(self._restore, list(loans.values()), notices)
            if handle is not None:
                handle.waiting = loan = Loan()
                loan.undo = undo
            sent = (self._send_inline if inline else self._send_bulk)(*scattered, notices, handle)
        finally:
            if sent is not None:
                pass
            elif undo is None:
                self._take_back(list(loans.values()))
            elif handle is not None and handle.state is ADMITTED:  # nothing of the frame has left
                undo()
        if missed and sent:
            self._offer(missed)
        return sent

    def _lend(self, parts: list[Any], rest: int, loans: dict[int, int]) -> tuple[list[int], int]:
        """Copy large parts into segments.

        Args:
            parts: the frame.
            rest: the frame's length in bytes.
            loans: gets the number of the segment of each part that is in one, by the part's place.

        Returns:
            The sizes of the parts for which there was no segment; the number of bytes that are in no segment.
        """
        missed: list[int] = []
        if not self._shares_memory:
            return missed, rest
        for index, part in enumerate(parts):
            size = len(part)
            if size < SEGMENT_BYTES or index == 0:
                continue
            if (loan := self._lender.lend(size)) is None:
                missed.append(size)
                continue
            loans[index], segment = loan
            rest -= size
            _copy(segment, part)
        return missed, rest

    def _send_inline(
        self, front: list[Any], _: list[Any], pieces: list[FramePiece], notices: Notices, handle: FrameHandle | None
    ) -> bool:
        # Before the peer has opened the bulk socket it could not read a table; until then there are no pieces or notices.
        if pieces or any(notices):
            return self._send_table(front, pieces, notices, handle)
        return self._send_small(front, sum(map(len, front)), handle)

    def _send_bulk(
        self,
        front: list[Any],
        streamed: list[Any],
        pieces: list[FramePiece],
        notices: Notices,
        handle: FrameHandle | None,
    ) -> bool:
        self._keep_heap()
        # A control frame, which is one part, does not wait: locks may be held.
        waits = (len(front) > 1 or bool(pieces)) and may_block()
        sent = self._writer.send(Transfer(_with_table(front, pieces, notices), streamed, handle, self._chunk), waits)
        if not sent and handle is not None:
            handle.given_back()
        return sent

    def _offer(self, missed: list[int]) -> None:
        if may_block():  # making a segment takes time
            for number, segment in self._lender.offer(missed, time.monotonic()):
                self._writer.send(Offer(number, segment.fd), waits=False)

    def _take_back(self, numbers: Iterable[int]) -> None:
        self._lender.take_back(numbers, time.monotonic())
        self._trim_in_a_while()

    def _restore(self, lent: list[int], notices: Notices) -> None:
        """Take back the segments and notices of a frame that was withdrawn."""
        self._take_back(lent)
        self._borrower.restore(notices.reusable, notices.refused)
        self._lender.restore(notices.gone)
        self._wake()

    # -- receiving

    def received(self, data: memoryview) -> None:
        """Take a scattered frame that travelled as a small one: its first byte has the bit ``SCATTERED``.

        Raises:
            SerializationError: the frame cannot be read.
        """
        front, pieces, notices = decode_table(data)
        self._note(notices)
        if len(front) > 1:
            self._deliver(Arrival(front, pieces, self._borrower, self._buffers).frame())

    def _begin(self, data: memoryview) -> Arrival:
        front, pieces, notices = decode_table(data)
        self._note(notices)
        self._keep_heap()
        self._trim_in_a_while()
        return Arrival(front, pieces, self._borrower, self._buffers, self._find)

    def _offered(self, number: int, descriptor: int | None) -> None:
        self._borrower.open(number, descriptor)
        self._flush()

    def _note(self, notices: Notices) -> None:
        if notices.refused:
            self._lender.forget(notices.refused, time.monotonic())
        if notices.gone:
            self._borrower.unmap(notices.gone)
        if notices.reusable:
            self._take_back(notices.reusable)

    # -- notices about segments, between the two sides

    def _notices(self) -> Notices:
        self._told = True
        return Notices(*self._borrower.take_returned(), self._lender.take_gone())

    def _wake(self) -> None:
        # Called by finalizers.
        if not (self._returning or self._closed):
            call_if_open(self._loop, self._return_soon)

    def _return_soon(self) -> None:
        if not self._returning:
            self._returning = True
            self._flush_later()

    def _flush_later(self) -> None:
        self._told = False
        self._loop.call_later(RETURN_SECONDS, self._flush_unless_told)

    def _flush_unless_told(self) -> None:
        if self._told:  # the next frame will probably tell too, so the loop need not send one of its own
            self._flush_later()
        else:
            self._returning = False
            self._flush()

    def _flush(self) -> None:
        notices = self._notices()
        if any(notices) and not self._closed:
            self._send_table([b"\0"], [], notices, None)

    def _send_table(
        self, front: list[Any], pieces: list[FramePiece], notices: Notices, handle: FrameHandle | None
    ) -> bool:
        parts = _with_table(front, pieces, notices)
        return self._send_small(parts, sum(map(len, parts)), handle)

    def _keep_heap(self) -> None:
        if self._bulk.encrypted:
            HEAP.keep()
            self._trim_in_a_while()

    def _trim_in_a_while(self) -> None:
        if not self._trimmer.ticking:
            self._trimmer.start()
            self._buffers.trim_in_a_while(self._loop)

    def _trim(self) -> bool:
        self._buffers.trim_in_a_while(self._loop)
        self._lender.trim(time.monotonic())
        self._flush()
        return bool(len(self._lender)) and not self._closed

    # -- the end

    async def finish(self) -> None:
        await self._writer.finish()
        try:
            self._bulk.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the socket is broken

    def _end(self, error: Exception | None) -> None:
        if error is not None:
            error = error.with_traceback(None)  # its frames refer to this object, as in ``StreamPipe``
        call_if_open(self._loop, lambda: None if self.over.done() else self.over.set_result(error))

    def close(self) -> None:
        """Drop the frames that wait, and close the socket. On the loop. Arrays over borrowed segments stay valid."""
        if self._closed:
            return
        self._closed = True
        self._end(None)
        self._reader.close()
        self._writer.close()
        self._bulk.forget_room(self._loop)
        try:
            self._bulk.shutdown(socket.SHUT_RDWR)  # wakes the threads that wait for it
        except OSError:
            pass  # the socket is broken
        self._bulk.close()
        self._lender.close()
        self._borrower.close()


def _copy(segment: Segment, part: Any) -> None:
    # NumPy releases the GIL while it copies.
    np.copyto(np.ndarray((len(part),), np.uint8, segment), np.frombuffer(part, np.uint8))


def _scatter(parts: list[Any], loans: dict[int, int], apart: int) -> tuple[list[Any], list[Any], list[FramePiece]]:
    """Return the parts of the front, the parts that are streamed after it, and the table's rows.

    Args:
        parts: the frame.
        loans: number of the segment of each part that is in one, by the part's place.
        apart: parts of more bytes than this are streamed.
    """
    front, streamed = [parts[0]], list[Any]()
    pieces: list[FramePiece] = []
    position = len(parts[0])
    for index in range(1, len(parts)):
        part = parts[index]
        size = len(part)
        if index in loans:
            pieces.append(FramePiece(position, size, loans[index]))
        elif size > apart:
            pieces.append(FramePiece(position, size, NO_SEGMENT))
            streamed.append(part)
        else:
            front.append(part)
        position += size
    return front, streamed, pieces


def _with_table(front: list[Any], pieces: list[FramePiece], notices: Notices) -> list[Any]:
    first = front[0]
    return [bytes([first[0] | SCATTERED]), memoryview(first)[1:], *front[1:], encode_table(pieces, notices)]
