"""A frame that waits for a stream can be taken back until its last byte has left, and is stamped anew when it had to wait."""

import asyncio
import threading
from contextlib import suppress

import pytest
from telegrad.rpc.lanes import frame
from telegrad.rpc.lanes.frame import HEAD_BYTES, FrameHandle, WaitingFrame
from telegrad.rpc.lanes.outbox import Outbox, next_batch, split_batch
from telegrad.rpc.threads.ioloop import LoopThread
from telegrad.rpc.wire.frames import decode, encode
from telegrad.rpc.wire.header import FRAME_HEAD, restamp
from telegrad.rpc.wire.messages import Incoming, Outgoing


class Stamp(FrameHandle):
    def restamp(self, head):
        return restamp(head, 0.25)


def request(size):
    made = Outgoing(1, 7, 5.0, 1)
    made.pickled = [bytes(size)]
    return encode(made)


def test_a_header_has_the_length_that_lanes_know():
    assert FRAME_HEAD.size == HEAD_BYTES


def test_a_frame_that_had_to_wait_says_how_much_time_is_left_now(monkeypatch):
    for late, seconds in ((-1.0, 0.25), (1000.0, 5.0)):
        monkeypatch.setattr(frame, "LATE_SECONDS", late)
        small = WaitingFrame(b"".join(request(10)), Stamp()).take()
        assert decode(small, False, Incoming()).timeout == seconds and len(small) == FRAME_HEAD.size + 10


def test_no_deadline_stays_no_deadline():
    head = FRAME_HEAD.pack(1, 2, 3, 4, 0.0)
    assert restamp(head, 7.0) == head
    assert FRAME_HEAD.unpack(restamp(FRAME_HEAD.pack(1, 2, 3, 4, 9.0), 7.0)) == (1, 2, 3, 4, 7.0)


def test_a_small_frame_is_taken_or_withdrawn():
    first, second = WaitingFrame(b"first", None), WaitingFrame(b"second", None)
    assert first.withdraw() and not first.withdraw() and first.take() is None
    assert second.take() == b"second" and not second.withdraw()


class Stream:
    """Stream whose messages leave when the test says so.

    Attributes:
        messages: each with the thread that began to write it.
    """

    def __init__(self, loop):
        self._loop = loop
        self._under_way = []
        self.messages = []

    async def write(self, message):
        self.messages.append((message, threading.current_thread()))
        self._under_way.append(left := self._loop.create_future())
        await left

    def leave(self):
        self._loop.call_soon_threadsafe(self._under_way.pop().set_result, None)

    def fail(self, error):
        self._loop.call_soon_threadsafe(self._under_way.pop().set_exception, error)


@pytest.fixture
def stream():
    """A stream, an outbox that is written to it, and a concurrent future of its end."""
    thread = LoopThread("outbox")
    made, box = Stream(thread.loop), Outbox(thread.loop, next_batch)
    over = asyncio.run_coroutine_threadsafe(box.write_to(made.write), thread.loop)
    thread.run(asyncio.sleep(0), 30)
    try:
        yield made, box, over
    finally:
        over.cancel()
        assert thread.stop(30)


def test_a_thread_writes_its_frame_itself_and_the_loop_what_waits_meanwhile(stream, until):
    made, box, over = stream
    for each in (b"first", b"second", b"third"):
        box.put(WaitingFrame(each, None))
    made.leave()
    until(lambda: len(made.messages) == 2)
    box.end()
    assert not over.done()
    made.leave()
    assert over.result(30) is None
    (first, mine), (rest, loops) = made.messages
    assert list(split_batch(first)) == [b"first"] and mine is threading.current_thread()
    assert list(split_batch(rest)) == [b"second", b"third"] and loops is not mine


def test_a_write_that_fails_ends_the_outbox(stream):
    made, box, over = stream
    box.put(WaitingFrame(b"first", None))
    box.put(WaitingFrame(b"second", None))
    made.fail(ValueError("the stream broke"))
    with pytest.raises(ValueError, match="broke"):
        over.result(30)
    assert len(made.messages) == 1


def test_a_stream_that_is_cancelled_ends_the_outbox_quietly(stream, caplog):
    made, box, over = stream
    box.put(WaitingFrame(b"first", None))
    made.fail(asyncio.CancelledError())
    with pytest.raises(ConnectionResetError, match="cancelled"):
        over.result(30)
    assert not caplog.records


def test_frames_of_many_threads_leave_once_and_in_order(stream, until):
    made, box, over = stream
    threads = [
        threading.Thread(
            target=lambda sender=sender: [box.put(WaitingFrame(bytes((sender, i)), None)) for i in range(100)]
        )
        for sender in range(4)
    ]
    for each in threads:
        each.start()

    def received():
        with suppress(IndexError):  # none is under way
            made.leave()
        return [frame for message, _ in made.messages for frame in split_batch(message)]

    until(lambda: len(received()) == 400)
    for each in threads:
        each.join(30)
    box.end()
    received()
    assert over.result(30) is None
    for sender in range(4):
        assert [frame[1] for frame in received() if frame[0] == sender] == list(range(100))


def test_in_asyncios_debug_mode_only_the_loop_writes(stream, until):
    """Its loop refuses callbacks of other threads: those that are added to a future that is done already."""
    made, box, _ = stream
    box._loop.set_debug(True)
    box.put(WaitingFrame(b"first", None))
    until(lambda: made.messages)
    assert made.messages[0][1] is not threading.current_thread()


def test_the_end_of_a_stream_waits_for_a_thread_that_takes_frames():
    loop, begun, go_on = LoopThread("outbox"), threading.Event(), threading.Event()

    def take(items):
        begun.set()
        assert go_on.wait(30)
        return next_batch(items)

    made, box = Stream(loop.loop), Outbox(loop.loop, take)
    over = asyncio.run_coroutine_threadsafe(box.write_to(made.write), loop.loop)
    loop.run(asyncio.sleep(0), 30)
    sender = threading.Thread(target=box.put, args=(WaitingFrame(b"first", None),))
    ending = threading.Thread(target=box.take_all)
    try:
        sender.start()
        assert begun.wait(30)
        ending.start()
        ending.join(0.1)
        assert ending.is_alive()
    finally:
        go_on.set()
        sender.join(30)
        ending.join(30)
        over.cancel()
        assert loop.stop(30)
    assert len(made.messages) == 1


def test_no_memory_for_the_next_message_ends_the_stream():
    loop = LoopThread("outbox")
    results = [b"first", MemoryError("no room")]

    def take(items):
        items.popleft()
        if isinstance(results[0], MemoryError):
            raise results.pop(0)
        return results.pop(0)

    made, box = Stream(loop.loop), Outbox(loop.loop, take)
    over = asyncio.run_coroutine_threadsafe(box.write_to(made.write), loop.loop)
    loop.run(asyncio.sleep(0), 30)
    try:
        box.put(WaitingFrame(b"first", None))
        box.put(WaitingFrame(b"second", None))
        made.leave()
        with pytest.raises(MemoryError, match="no room"):
            over.result(30)
    finally:
        over.cancel()
        assert loop.stop(30)
