"""Reader of the frames on a stream socket: it reads several small frames at once, and large ones into their own memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...base.errors import SerializationError
from .frame import BULK_BYTES, FRAME_LENGTH, new_memory

if TYPE_CHECKING:
    from .stream_socket import StreamSocket

READ_BYTES = 16 * 1024  # of one read: some 300 small requests; if it were more, all their answers would come late
WIDE_BYTES = 64 * 1024  # of one read while longer frames come: then one read suffices, not two or three
STREAM_HEAD_BYTES = FRAME_LENGTH.size


class StreamReader:
    """Splits the bytes of a non-blocking socket into frames. One thread at a time may use it.

    Each frame has memory of its own, which is writable and belongs to the receiver.

    Args:
        source: the socket.
        most: bytes of the largest frame.
    """

    def __init__(self, source: StreamSocket, most: int = BULK_BYTES) -> None:
        self._source = source
        self._most = most
        self._make_buffer(READ_BYTES)
        self._end = 0  # of the bytes in the buffer, which begin with a frame's length
        self._large: memoryview | None = None  # memory of a frame that does not fit into the buffer
        self._filled = 0  # bytes of that frame that have arrived

    def _make_buffer(self, size: int) -> None:
        self._buffer = bytearray(size)
        self._view = memoryview(self._buffer)

    def read(self) -> Sequence[Any]:
        """Read once, without waiting; return the frames that are complete now.

        Raises:
            BlockingIOError: there is nothing to read.
            EOFError: the peer has ended its side.
            OSError: the socket is broken.
            SerializationError: a frame is longer than ``most``.
        """
        if self._large is not None:
            return self._read_large(self._large)
        end = self._end
        size = self._source.recv_into(self._view[end:] if end else self._buffer)
        if not size:
            raise EOFError
        end += size
        if (
            end >= STREAM_HEAD_BYTES and FRAME_LENGTH.unpack_from(self._buffer)[0] + STREAM_HEAD_BYTES == end
        ):  # exactly one frame: the usual case
            self._end = 0
            return (self._buffer[STREAM_HEAD_BYTES:end],)
        return self._split(end)

    def _split(self, end: int) -> list[Any]:
        frames: list[Any] = []
        buffer, position = self._buffer, 0
        while end - position >= STREAM_HEAD_BYTES:
            start = position + STREAM_HEAD_BYTES
            stop = start + FRAME_LENGTH.unpack_from(buffer, position)[0]
            if stop > end:
                self._check_size(stop - start)
                if stop - position > len(buffer):
                    self._begin_large(stop - start, start, end)
                    return frames
                break
            frames.append(buffer[start:stop])
            position = stop
        self._end = rest = end - position
        buffer[:rest] = buffer[position:end]
        if len(frames) > 1 and rest < READ_BYTES < len(buffer):
            self._make_buffer(READ_BYTES)
            self._buffer[:rest] = buffer[:rest]
        return frames

    def _check_size(self, size: int) -> None:
        if size > self._most:
            raise SerializationError(f"a frame of {size} bytes on a socket, where none is longer than {self._most}")

    def _begin_large(self, size: int, start: int, end: int) -> None:
        self._large, self._filled = new_memory(size), end - start
        self._large[: self._filled] = self._view[start:end]
        self._end = 0
        if size + STREAM_HEAD_BYTES <= WIDE_BYTES:  # more such frames may follow
            self._make_buffer(WIDE_BYTES)

    def _read_large(self, large: memoryview) -> Sequence[Any]:
        size = self._source.recv_into(large[self._filled :])
        if not size:
            raise EOFError
        self._filled += size
        if self._filled < len(large):
            return ()
        self._large = None
        return (large,)


class TlsStreamReader(StreamReader):
    """Reader for a socket under TLS, which may take more bytes from the system than it returns at once.

    So each read returns all frames that are complete. Bytes that TLS has taken already do not make the socket readable.
    """

    def read(self) -> Sequence[Any]:
        frames = super().read()
        if not self._source.holds_back:
            return frames
        found = list(frames)
        try:
            with self._source.only_held_back():
                while self._source.holds_back:
                    found += super().read()
        except (BlockingIOError, EOFError):
            pass  # the next read raises EOFError again
        return found


def reader_of(source: StreamSocket) -> StreamReader:
    """Return the reader for a socket."""
    return (TlsStreamReader if source.encrypted else StreamReader)(source)
