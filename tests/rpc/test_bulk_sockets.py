"""Bulk sockets whose session ends while a thread reads or writes, in a moment that ``LargePipe`` cannot choose."""

import os
import socket
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import pytest
from helpers.interrupts import OpcodeInterrupter, interrupt
from helpers.programs import ending_within
from telegrad.rpc.lanes.frame import FrameHandle
from telegrad.rpc.lanes.large import reader
from telegrad.rpc.lanes.large.chunk_size import LEAST_CHUNK_BYTES, ChunkSize
from telegrad.rpc.lanes.large.incoming import TransferAssembly
from telegrad.rpc.lanes.large.reader import BulkReader
from telegrad.rpc.lanes.large.transfer import UNIT_HEAD as UNIT
from telegrad.rpc.lanes.large.transfer import Kind, Offer, Transfer
from telegrad.rpc.lanes.large.writer import BulkWriter
from telegrad.rpc.lanes.stream_socket import PlainSocket


class LatePoll:
    """Poll object whose second user is late."""

    def __init__(self, poll):
        self._poll = poll
        self._calls = 0
        self.called, self.goes_on = threading.Event(), threading.Event()

    def poll(self, *milliseconds):
        self._calls += 1
        if self._calls == 2:
            self.called.set()
            assert self.goes_on.wait(20)
        return self._poll.poll(*milliseconds)


def test_a_thread_that_reads_ends_although_another_socket_gets_its_sockets_number(loop, until, monkeypatch):
    monkeypatch.setattr(reader, "LINGER_SECONDS", 0.05)
    (near, far), (one, two), errors = socket.socketpair(), socket.socketpair(), []
    far = PlainSocket.of(far)

    async def read():
        return BulkReader(far, loop.loop, TransferAssembly(bytearray, None), None, errors.append)

    async def close():
        reading.close()
        far.close()

    reading = loop.run(read())
    late = reading._poll = LatePoll(reading._poll)
    near.send(UNIT.pack(Kind.BEGIN, 100))
    assert late.called.wait(20)
    number = far.fileno()
    loop.run(close())
    os.dup2(one.fileno(), number)
    late.goes_on.set()
    until(lambda: errors)
    os.close(number)
    for each in (near, one, two):
        each.close()


class NoThread:
    """Thread that the system does not start, as under a limit of memory."""

    def __init__(self, **_):
        pass

    def start(self):
        raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("comes", [False, True])
def test_a_missing_thread_is_told_once_and_ends_the_session_after_a_while(loop, until, monkeypatch, caplog, comes):
    monkeypatch.setattr(reader, "READER_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(reader, "GIVE_UP_SECONDS", 20.0 if comes else 0.05)
    monkeypatch.setattr(reader, "threading", SimpleNamespace(Thread=NoThread))
    (near, far), errors = socket.socketpair(), []
    far = PlainSocket.of(far)

    async def read():
        return BulkReader(far, loop.loop, TransferAssembly(bytearray, None), None, errors.append)

    async def close():
        reading.close()
        far.close()

    reading = loop.run(read())
    near.close()
    if comes:
        until(lambda: caplog.messages)
        monkeypatch.setattr(reader, "threading", threading)
    until(lambda: errors)
    assert errors == [None] if comes else isinstance(errors[0], MemoryError)
    assert [message for message in caplog.messages if "no thread can be started to read" in message] == caplog.messages
    assert len(caplog.messages) == 1
    loop.run(close())


class Closing:
    """Socket whose session ends in one of its writes.

    Args:
        ending: number of that write, from 1.
    """

    writer = None

    def __init__(self, ending=1):
        self._left = ending

    full = False

    def sendmsg(self, parts, *rest):
        self._left -= 1
        if not self._left:
            self.writer.close()
        return sum(map(len, parts))


class Handle(FrameHandle):
    def restamp(self, head):
        return head


@pytest.fixture
def closing(loop):
    """A function that returns a writer whose session ends in the write of that number."""

    def make(ending):
        target = Closing(ending)
        target.writer = BulkWriter(target, loop.loop, None)
        return target.writer

    return make


def test_a_thread_that_writes_an_offer_outlives_the_end_of_the_session(closing):
    assert closing(1).send(Offer(1, 0), waits=True)


@pytest.mark.parametrize("writes, arrives", [(1, False), (2, True)])
def test_a_frame_was_sent_if_all_of_it_left_before_the_session_ended(closing, writes, arrives):
    """Two writes make the frame. One that arrives must not be sent again, or its call runs twice."""
    handle = Handle()
    transfer = Transfer([bytes(30)], [bytes(LEAST_CHUNK_BYTES)], handle)
    assert closing(writes).send(transfer, waits=True) is arrives
    assert not handle.withdraw()


def test_a_frame_that_was_withdrawn_as_the_session_ended_is_not_sent_again(closing):
    writer, handle = closing(1), Handle()

    class Withdrawn(Transfer):
        def copy(self):
            super().copy()
            assert handle.withdraw()
            writer.close()

    assert writer.send(Withdrawn([bytes(30)], [], handle), waits=False)


def test_a_frame_whose_last_write_goes_on_as_the_session_ends_was_sent(loop):
    last, goes_on = threading.Event(), threading.Event()

    class Slow:
        full = False

        def sendmsg(self, parts, *rest):
            last.set()
            assert goes_on.wait(20)
            return sum(map(len, parts))

    writer, frame, taken = BulkWriter(Slow(), loop.loop, None), Transfer([bytes(30)], [], None), []
    writing = threading.Thread(target=writer.send, args=(frame, True))
    taking = threading.Thread(target=lambda: taken.append(writer._take_back(frame)))
    writing.start()
    assert last.wait(20)
    writer.close()
    taking.start()
    taking.join(0.1)
    assert taking.is_alive()
    goes_on.set()
    for each in (taking, writing):
        each.join(20)
    assert taken == [False]


def test_nothing_is_kept_that_is_sent_while_the_session_ends(loop):
    class Late(Offer):
        """Offer that comes when it was seen that the session is open, and just before its end."""

        def copy(self):
            super().copy()
            writer.close()

    writer, late = BulkWriter(Closing(), loop.loop, None), Late(1, 0)
    kept = weakref.ref(late)
    assert not writer.send(late, waits=False)
    del late
    assert kept() is None


class Counted(BulkWriter):
    """Writer that counts how often the loop is called for it."""

    calls = 0

    def _soon(self):
        self.calls += 1


def test_the_loop_is_not_called_for_frames_whose_threads_wait(loop, until, thread):
    """Two threads send: the first one ends while the second one waits for its turn."""
    first, goes_on, targets = threading.Event(), threading.Event(), []

    class Slow:
        full = False

        def sendmsg(self, parts, *rest):
            targets.append(parts)
            first.set()
            assert goes_on.wait(20)
            return sum(map(len, parts))

    writer = Counted(Slow(), loop.loop, None)
    frames = [Transfer([bytes([number])], [], None) for number in range(2)]
    threads = [thread(lambda frame=frame: writer.send(frame, True)) for frame in frames[:1]]
    assert first.wait(20)
    threads.append(thread(lambda: writer.send(frames[1], True)))
    until(lambda: len(writer._queue) == 2)
    goes_on.set()
    for each in threads:
        each.join(20)
    assert len(targets) == 2 and not writer._queue and not writer.calls


def test_the_loop_is_called_when_only_its_frames_are_left(loop, until, thread):
    writing, goes_on = threading.Event(), threading.Event()

    class Slow:
        full = False

        def sendmsg(self, parts, *rest):
            writing.set()
            assert goes_on.wait(20)
            return sum(map(len, parts))

    writer = Counted(Slow(), loop.loop, None)
    sending = thread(lambda: writer.send(Transfer([b"waits"], [], None), True))
    assert writing.wait(20)
    assert writer.send(Transfer([b"does not"], [], None), False) and writer.calls == 1
    goes_on.set()
    sending.join(20)
    assert len(writer._queue) == 1 and writer.calls == 2


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_last_unit_that_found_no_room_is_not_sent_if_the_session_ends(withdrawn):
    """Its call is cancelled just as the unit is given to a target that has no room: too late to withdraw it."""
    handle = Handle()

    class NoRoom:
        def sendmsg(self, parts, *rest):
            assert not (withdrawn and handle.withdraw())
            raise BlockingIOError

    transfer = Transfer([bytes(30)], [], handle)
    with pytest.raises(BlockingIOError):
        transfer.write(NoRoom())
    assert transfer.take_back()


def test_a_frame_that_is_cut_by_the_end_of_its_session_keeps_no_memory(loop, until):
    (near, far), ends, memories = socket.socketpair(), [], []
    far = PlainSocket.of(far)

    def take(size):
        memory = memoryview(bytearray(size))
        memories.append(weakref.ref(memory))
        return memory

    async def read():
        return BulkReader(far, loop.loop, TransferAssembly(take, None), None, ends.append)

    async def close():
        reading.close()
        far.close()

    reading = loop.run(read())
    near.send(UNIT.pack(Kind.BEGIN, 100) + UNIT.pack(Kind.CHUNK, 100) + bytes(50))
    until(lambda: memories)
    near.close()
    until(lambda: ends)
    assert ends == [None]
    until(lambda: memories[0]() is None)
    loop.run(close())


class Roomy:
    """Target that takes whatever it gets."""

    full = False

    def sendmsg(self, parts, *rest):
        return sum(map(len, parts))


@pytest.mark.parametrize("begun", [False, True])
def test_a_handler_that_raises_anywhere_in_a_write_leaves_the_turn_to_others(loop, thread, begun):
    """The loop may have begun the frame: then the thread that was interrupted must get the turn again, to cut it."""
    interrupter, place, broken = OpcodeInterrupter(action=lambda frame: interrupt()), "", []
    while place is not None:
        writer, frame = (
            BulkWriter(Roomy(), loop.loop, broken.append),
            Transfer([bytes(30)], [bytes(LEAST_CHUNK_BYTES)], None),
        )
        if begun:
            frame.write(Roomy())
        with ending_within(60):
            place = interrupter.run(partial(writer.send, frame, True))
        other = thread(partial(writer.send, Transfer([bytes(30)], [], None), True))
        other.join(20)
        assert not other.is_alive(), place
    assert len(interrupter) > 20


def test_a_chunk_takes_as_many_bytes_as_leave_in_a_moment():
    chunk = ChunkSize(10, 70)
    values = []
    for size, seconds in [(10, 0.001), (20, 0.0), (40, 0.05), (3, 9.0), (70, 0.2), (35, 0.7)]:
        chunk.wrote(size, seconds)
        values.append(chunk.value)
    assert values == [20, 40, 70, 70, 35, 10]  # it doubles at most, and small writes tell nothing


def test_a_socket_that_may_wait_is_read_in_one_call(thread):
    near, far = map(PlainSocket.of, socket.socketpair())
    with near, far:
        assert far.let_wait(20.0)
        found = memoryview(bytearray(6))
        reading = thread(lambda: far.recv_whole(found))
        for byte in b"abcdef":
            near.send(bytes([byte]))
        reading.join(20)
        assert not reading.is_alive() and bytes(found) == b"abcdef"
        with pytest.raises(BlockingIOError):
            far.sendmsg([bytes(1 << 24)], (), socket.MSG_DONTWAIT) and far.sendmsg([b"1"], (), socket.MSG_DONTWAIT)
        assert far.let_wait(0.001)
        with pytest.raises(BlockingIOError):
            far.recv_whole(found)
