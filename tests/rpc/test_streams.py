"""Frames in and out of a stream socket: split wherever the system splits them, kept in order, withdrawn while they wait."""

import asyncio
import random
import socket
import struct
import threading
from contextlib import suppress

import pytest
from helpers.lines import stop
from telegrad.base.errors import SerializationError
from telegrad.rpc.call_states import ADMITTED, WRITTEN
from telegrad.rpc.lanes.frame import HEAD_BYTES, FrameHandle, WaitingFrame
from telegrad.rpc.lanes.poller import Poller
from telegrad.rpc.lanes.stream_pipe import MOST_PARTS, TOGETHER, StreamPipe, StreamWriter
from telegrad.rpc.lanes.stream_reader import READ_BYTES, WIDE_BYTES, StreamReader
from telegrad.rpc.lanes.stream_socket import PlainSocket

SIZES = [0, 1, 3, 4, 100, READ_BYTES - 4, READ_BYTES - 3, READ_BYTES, 2 * READ_BYTES, WIDE_BYTES - 4, WIDE_BYTES - 3]


class Handle(FrameHandle):
    def restamp(self, head):
        return head


@pytest.fixture
def ends():
    near, far = map(PlainSocket.of, socket.socketpair())
    with near, far:
        yield near, far


def read_all(reader):
    frames = []
    with suppress(BlockingIOError, EOFError):
        while True:
            frames += map(bytes, reader.read())
    return frames


def small_buffer(end):
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)


@pytest.mark.parametrize("seed", range(5))
def test_frames_are_split_wherever_the_bytes_were_cut(ends, seed):
    choice = random.Random(seed)
    near, far = ends
    frames = [choice.randbytes(choice.choice(SIZES)) for _ in range(20)]
    data = b"".join(struct.pack("<I", len(frame)) + frame for frame in frames)
    reader, got = StreamReader(far), []
    while data:
        sent = near.send(data[: choice.choice([1, 3, 5, 1000, READ_BYTES + 1])])
        data = data[sent:]
        got += read_all(reader)
    assert got == frames


def test_a_frame_that_claims_too_much_is_refused_before_memory_is_taken(ends):
    near, far = ends
    near.send(struct.pack("<I", 2**32 - 1))
    with pytest.raises(SerializationError, match="a frame of 4294967295 bytes"):
        StreamReader(far).read()


def test_frames_that_follow_a_longer_one_take_one_read_each_until_small_ones_come(ends):
    near, far = ends
    long, reader = bytes(2 * READ_BYTES), StreamReader(far)
    small = [b"%04d" % number for number in range(READ_BYTES // 4)]
    head = struct.pack("<I", len(long))
    for reads in (2, 1, 1):
        near.send(head + long)
        assert [list(reader.read()) for _ in range(reads)][-1] == [long]
    for _ in range(2):
        near.send(b"".join(struct.pack("<I", 4) + frame for frame in small))
        first = len(reader.read())
        assert read_all(reader) == small[first:]
    assert first == READ_BYTES // 8, "many small frames are not read at once: the first would wait for the last"


def test_the_end_of_the_peer_is_told_after_its_last_frame(ends):
    near, far = ends
    StreamWriter(near, lambda wanted: None, int, stop).send([b"last"], 4, None)
    near.close()
    reader = StreamReader(far)
    assert list(map(bytes, reader.read())) == [b"last"]
    with pytest.raises(EOFError):
        reader.read()


def test_what_has_no_room_waits_in_order(ends):
    near, far = ends
    small_buffer(near)
    told = []
    writer, reader = StreamWriter(near, told.append, int, stop), StreamReader(far)
    frames = [bytes([number]) * 3000 for number in range(50)]
    for frame in frames:
        assert writer.send([frame[:10], frame[10:]], len(frame), None)
    assert told, "nobody was told that frames wait"
    got = []
    while writer.flush() or len(got) < len(frames):
        got += read_all(reader)
    assert got == frames


def test_a_frame_that_waits_can_be_withdrawn_and_one_that_left_cannot(ends):
    near, far = ends
    small_buffer(near)
    writer, reader = StreamWriter(near, lambda wanted: None, int, stop), StreamReader(far)
    handles = [Handle() for _ in range(40)]
    for number, handle in enumerate(handles):
        writer.send([bytes([number]) * 3000], 3000, handle)
    waiting = [number for number, handle in enumerate(handles) if handle.waiting is not None]
    withdrawn = {number for number in waiting[::2] if handles[number].waiting.withdraw()}
    assert withdrawn == set(waiting[::2]) and 0 not in waiting
    got = []
    while writer.flush() or len(got) < len(handles) - len(withdrawn):
        got += read_all(reader)
    assert [frame[0] for frame in got] == [number for number in range(40) if number not in withdrawn]


def test_a_frame_sent_by_a_signal_handler_waits_for_the_one_under_way():
    class Interrupted:
        """Socket whose first write is interrupted by a handler that sends, and takes a part only."""

        data = b""

        def sendmsg(self, parts):
            whole = b"".join(parts)
            if not self.data:
                writer.send([b"second"], 6, None)
                whole = whole[:6]
            self.data += whole
            return len(whole)

        def send(self, data):
            return self.sendmsg([data])

    target = Interrupted()
    writer = StreamWriter(target, lambda wanted: None, int, stop)
    writer.send([b"first"], 5, None)
    assert not writer.flush()
    assert target.data == b"\5\0\0\0first" + b"\6\0\0\0second"


def test_a_frame_of_very_many_parts_is_one_frame(ends):
    near, far = ends
    parts = [b"%d" % (number % 10) for number in range(5 * MOST_PARTS)]
    StreamWriter(near, lambda wanted: None, int, stop).send(parts, len(parts), None)
    assert read_all(StreamReader(far)) == [b"".join(parts)]


def test_a_late_frame_gets_a_new_header(ends, monkeypatch):
    class Stamped(FrameHandle):
        def restamp(self, head):
            return b"n" * len(head)

    near, far = ends
    small_buffer(near)
    monkeypatch.setattr("telegrad.rpc.lanes.frame.LATE_SECONDS", -1.0)
    writer, reader = StreamWriter(near, lambda wanted: None, int, stop), StreamReader(far)
    for _ in range(20):
        writer.send([b"o" * HEAD_BYTES, b"body" * 1000], HEAD_BYTES + 4000, Stamped())
    got = []
    while writer.flush() or len(got) < 20:
        got += read_all(reader)
    assert got[0].startswith(b"o" * HEAD_BYTES) and got[-1] == b"n" * HEAD_BYTES + b"body" * 1000


def test_frames_that_may_wait_are_written_together(ends):
    near, far = ends
    writes, told = [], []

    class Counted:
        def sendmsg(self, data):
            writes.append(data)
            return near.sendmsg(data)

        def send(self, data):
            return self.sendmsg([data])

    soon = []
    writer, reader = StreamWriter(Counted(), told.append, lambda: soon.append(1), stop), StreamReader(far)
    frames = [b"%d" % number for number in range(TOGETHER + 3)]
    for frame in frames:
        writer.send([frame], len(frame), None, False)
    assert len(writes) == 1 and soon and not told, "a full group goes at once"
    assert read_all(reader) == frames[:TOGETHER]
    writer.send([b"at once"], 7, None)  # together with those that wait, and after them
    assert len(writes) == 2 and not writer.waiting
    assert read_all(reader) == [*frames[TOGETHER:], b"at once"]
    writer.send([b"waits"], 5, None, False)
    assert not writer.flush() and read_all(reader) == [b"waits"] and not told


def test_a_thread_that_sends_does_not_wait_for_one_that_writes(ends):
    """Else it would wait for the interpreter, too, and others would come and wait for the lock meanwhile."""
    near, far = ends
    writers = []

    class Slow:
        """Socket during whose first write another thread sends."""

        def send(self, data):
            writers.append(threading.current_thread())
            if len(writers) == 1:
                other = threading.Thread(target=writer.send, args=([b"second"], 6, None))
                other.start()
                other.join(20)
                assert not other.is_alive() and len(writer.waiting) == 1
            return near.send(data)

    writer, reader = StreamWriter(Slow(), lambda wanted: None, int, stop), StreamReader(far)
    assert writer.send([b"first"], 5, None)
    assert read_all(reader) == [b"first", b"second"]
    assert writers == [threading.current_thread()] * 2 and not writer.waiting


@pytest.mark.parametrize("at_once", [True, False])
def test_a_frame_that_comes_after_the_end_while_others_wait_is_given_back(ends, at_once):
    near, _ = ends
    writer, handle = StreamWriter(near, lambda wanted: None, int, stop), Handle()
    writer.send([b"waits"], 5, None, False)
    writer.close()
    assert not writer.send([b"late"], 4, handle, at_once)
    assert handle.state is ADMITTED and handle.waiting is None


@pytest.mark.parametrize("at_once", [True, False])
def test_a_frame_takes_along_those_that_were_left_for_it(ends, at_once):
    """Also if it may wait itself: then the writer asks to be flushed, though the frame is not the first that waits."""
    near, far = ends
    asked = []
    writer, reader = StreamWriter(near, stop, lambda: asked.append(1), stop), StreamReader(far)
    writer.leave([b"left"], None)
    assert not asked
    writer.send([b"sent"], 4, None, at_once)
    if not at_once:
        assert asked and writer.waiting
        writer.write_waiting()
    assert [bytes(frame) for frame in reader.read()] == [b"left", b"sent"] and not writer.waiting


def test_an_end_waits_for_nothing_after_a_write_that_broke(ends):
    """The peer had ended its side before, so the error of the write is not the first end of the stream."""

    async def end():
        poller = Poller(asyncio.get_running_loop())
        stream = StreamPipe(ends[0], poller, lambda frame, owned: None, ((), ()), lambda: 0)
        ends[1].close()
        stream.reading.by_loop()
        assert await stream.over is None
        sent = stream.send([b"lost"], 4, None), stream.send([b"late"], 4, None)
        await asyncio.wait_for(stream.finish(), 30)
        stream.close()
        poller.close()
        return sent

    assert asyncio.run(end()) == (False, False)


class Breaks:
    """Socket that takes everything until it breaks, and whose first write another thread's frame comes into."""

    def __init__(self, socket, broken_by):
        self.stream, self.socket, self.left, self._broken_by = None, socket, [], broken_by

    def __getattr__(self, name):
        return getattr(self.socket, name)

    def send(self, data):
        data = bytes(data)
        if self._broken_by in data:
            raise ConnectionResetError("it broke")
        self.left.append(data)
        if len(self.left) == 1:
            self.stream.unsent.append(WaitingFrame(b"other", None))
        return len(data)


@pytest.mark.parametrize(
    ("broken_by", "taken", "left"),
    [(b"first", False, []), (b"other", True, [b"\5\0\0\0first"])],
    ids=["its write", "the write after it"],
)
def test_a_frame_that_has_left_is_not_refused_because_the_next_one_found_the_socket_broken(
    ends, broken_by, taken, left
):
    """Its request may have been read: it would run twice if it went by another session."""

    async def send():
        poller, target, handle = Poller(asyncio.get_running_loop()), Breaks(ends[0], broken_by), Handle()
        target.stream = stream = StreamPipe(target, poller, lambda frame, owned: None, ((), ()), lambda: 0)
        handle.state = ADMITTED
        assert stream.send([b"first"], 5, handle) is taken
        assert handle.state is (WRITTEN if taken else ADMITTED) and target.left == left
        assert isinstance(await stream.over, ConnectionResetError)
        assert not stream.send([b"late"], 4, None)
        stream.close()
        poller.close()

    asyncio.run(send())
