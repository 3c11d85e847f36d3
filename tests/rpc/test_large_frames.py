"""Large frames between two ends in this process: over Unix sockets with segments, over TCP, withdrawn, interrupted, broken."""

import asyncio
import gc
import os
import random
import resource
import signal
import socket
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.certificates import authority, worker_tls
from telegrad.base.errors import SerializationError
from telegrad.core.futures import shield
from telegrad.rpc.lanes.frame import SCATTERED, FrameHandle
from telegrad.rpc.lanes.large import arrival, reader
from telegrad.rpc.lanes.large.allowance import Allowance
from telegrad.rpc.lanes.large.buffers import Buffers
from telegrad.rpc.lanes.large.pipe import SEGMENT_BYTES, LargePipe
from telegrad.rpc.lanes.large.resources import Resources
from telegrad.rpc.lanes.large.scattered import ScatteredFrame
from telegrad.rpc.lanes.stream_socket import PlainSocket
from telegrad.rpc.lanes.tls_socket import TlsSocket

HEAD = b"\x01" + bytes(range(1, 40))
MIB = 1 << 20


class Handle(FrameHandle):
    """Handle of a frame in tests."""

    __slots__ = ("restamped",)

    def __init__(self):
        super().__init__()
        self.restamped = 0

    def restamp(self, head):
        self.restamped += 1
        return head


class End:
    """One end of a session: small frames are given to the other end at once."""

    def __init__(self, loop, bulk):
        self.loop = loop
        self.bulk = bulk
        self.other = self
        self.large = None
        self.frames, self.errors = [], []
        self.kept = None  # a list, to keep frames as they arrive
        self.changed = threading.Condition()

    def open(self):
        self.loop.run(self._open())
        return self

    async def _open(self):
        resources = Resources(Allowance(1 << 30, 100), Allowance(1 << 30, 100), Buffers())
        self.large = LargePipe(self.bulk, self.send_small, self.deliver, resources, expect=lambda size: None)
        self.large.over.add_done_callback(lambda over: self.note(self.errors, over.result()))

    def send_small(self, parts, size, handle):
        frame = memoryview(bytearray().join(parts))
        if not frame[0] & SCATTERED:
            self.other.deliver(frame)
        elif self.other.large is not None:
            self.other.large.received(frame)
        return True

    def deliver(self, frame):
        if self.kept is None:
            self.note(self.frames, whole(frame))
        else:
            self.note(self.kept, frame)

    def note(self, notes, note):
        with self.changed:
            notes.append(note)
            self.changed.notify_all()

    def until(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, 20)

    def send(self, *parts, handle=None):
        return self.large.send(list(parts), sum(map(len, parts)), handle)

    async def close(self):
        if self.large is not None:
            self.large.close()
        self.bulk.close()
        self.kept = None


def whole(frame):
    """Return a frame's bytes, and check that its memory is the receiver's."""
    if isinstance(frame, ScatteredFrame):
        assert not any(memory.readonly for memory in frame._memories)
        return bytes(frame.read(0, len(frame))) if not frame.problem else frame.problem
    return bytes(frame)


def tcp_pair():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        return near, listening.accept()[0]


def secured(plain, loop, folder):
    """Return a pair of sockets under TLS, after their handshake."""
    jobs = authority()
    near, far = (worker_tls(folder / name, jobs, name) for name in ("near", "far"))
    pair = TlsSocket(plain[0], near, f"far.{jobs.job}"), TlsSocket(plain[1], far, None)

    async def shake():
        await asyncio.gather(*(each.handshake() for each in pair))

    loop.run(shake())
    return pair


@pytest.fixture(params=["unix", "tcp", "tls"])
def ends(request, loop, tmp_path):
    """Two ends; the far one is not open yet, and reads nothing until it is."""
    sockets = [PlainSocket.of(each) for each in (socket.socketpair() if request.param == "unix" else tcp_pair())]
    if request.param == "tls":
        sockets = secured(sockets, loop, tmp_path)
    near, far = (End(loop, each) for each in sockets)
    near.other, far.other = far, near
    yield near.open(), far
    for end in (near, far):
        loop.run(end.close())


def parts_of(draw):
    """Return a frame as parts of any sizes."""
    sizes = [draw.choice((0, 1, 100, 5000, SEGMENT_BYTES, 300_000, 6 * MIB)) for _ in range(draw.randrange(8))]
    return [HEAD, *(draw.randbytes(size) for size in sizes)]


@pytest.mark.parametrize("seed", range(4))
def test_frames_of_any_parts_arrive_as_they_were(ends, seed):
    near, far = ends
    far.open()
    draw = random.Random(seed)
    sent = [b"".join(parts) for parts in (parts_of(draw) for _ in range(20)) if near.send(*parts)]
    far.until(lambda: len(far.frames) == 20)
    assert sorted(far.frames) == sorted(sent)


def test_frames_of_several_threads_and_of_the_loop_arrive_whole(ends, thread):
    near, far = ends
    far.open()
    bodies = [bytes([number]) * (5 * MIB + number) for number in range(4)]
    threads = [thread(near.send, HEAD, body) for body in bodies[:3]]

    async def send():
        memory = bytearray(bodies[3])
        assert near.send(HEAD, memory)
        memory[:] = bytes(len(memory))  # the loop did not wait: it was copied

    near.loop.run(send())
    for each in threads:
        each.join()
    far.until(lambda: len(far.frames) == 4)
    assert sorted(far.frames) == sorted(HEAD + body for body in bodies)


def test_memory_may_change_when_send_returns(ends):
    near, far = ends
    far.open()
    for size in (SEGMENT_BYTES, 5 * MIB) * 3:  # also when there are segments
        memory = bytearray(b"x" * size)
        near.send(HEAD, memory)
        memory[:] = b"y" * size
    far.until(lambda: len(far.frames) == 6)
    assert all(set(frame[len(HEAD) :]) == {ord("x")} for frame in far.frames)


def test_memory_is_let_go_when_the_frame_has_left(ends):
    """Its handle may live on, until the deadline of its call."""
    near, far = ends
    far.open()
    array, handle = np.zeros(5 * MIB, np.uint8), Handle()
    memory = weakref.ref(array)
    near.send(HEAD, memoryview(array), handle=handle)
    del array
    assert memory() is None
    far.until(lambda: far.frames)


@pytest.mark.parametrize("ends", ["unix"], indirect=True)
def test_a_size_that_is_sent_again_travels_in_a_segment_that_is_reused(ends, until):
    near, far = ends
    far.open()
    array = np.arange(MIB, dtype=np.uint8)
    for count in range(1, 8):
        near.send(HEAD, memoryview(array))
        far.until(lambda count=count: len(far.frames) == count)
        until(lambda: not near.large._lender._in_use)
    assert len(set(far.frames)) == 1
    assert near.large._lender._made == len(far.large._borrower) == 1


@pytest.mark.parametrize("ends", ["unix"], indirect=True)
def test_the_loop_tells_of_returned_segments_only_if_no_frame_does(ends, monkeypatch):
    large, later, sent = ends[1].open().large, [], []
    loop = SimpleNamespace(
        call_later=lambda seconds, action: later.append(action), call_soon_threadsafe=lambda action, context: action()
    )
    monkeypatch.setattr(large, "_loop", loop)
    monkeypatch.setattr(large, "_send_small", lambda parts, size, handle: sent.append(parts))
    large._borrower.restore([7], [])
    large._wake()
    assert large._notices().reusable == [7]  # as a frame does that leaves
    later.pop()()
    large._borrower.restore([8], [])
    large._wake()
    assert not sent and len(later) == 1
    later.pop()()
    assert len(sent) == 1 and not later
    large._wake()
    assert len(later) == 1


@pytest.mark.parametrize("ends", ["unix"], indirect=True)
def test_a_frame_can_be_read_by_an_end_that_has_not_opened_its_bulk_socket_yet(ends):
    near, far = ends
    frame = bytes([2]) + os.urandom(SEGMENT_BYTES)
    near.send(frame[:1], frame[1:])
    assert far.frames == [frame]


@pytest.mark.parametrize("ends", ["unix"], indirect=True)
def test_arrays_that_are_kept_hold_segments_only_up_to_a_bound(ends):
    near, far = ends
    near.large._lender._allowance = Allowance(3 * MIB, 100)
    far.open()
    far.kept = []
    for number in range(12):
        near.send(HEAD, bytes([number]) * MIB)
        far.until(lambda number=number: len(far.kept) == number + 1)
    assert near.large._lender._made == len(far.large._borrower) == 3
    assert [whole(frame)[-1] for frame in far.kept] == list(range(12))


@pytest.mark.parametrize("ends", ["unix"], indirect=True)
def test_what_is_lent_comes_back_without_further_frames(ends, until):
    near, far = ends
    far.open()
    for _ in range(4):
        near.send(HEAD, bytes(MIB))
    until(lambda: len(near.large._lender) == near.large._lender._made > 0)


@pytest.mark.parametrize("ends", ["unix"], indirect=True)
def test_a_receiver_without_descriptors_gets_bytes(ends, until):
    near, far = ends
    far.open()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    near.send(HEAD, bytes(MIB))
    far.until(lambda: len(far.frames) == 1)
    first_free = os.dup(0)
    os.close(first_free)
    try:
        near.send(HEAD, bytes(MIB))  # makes a segment; its descriptor is in the socket
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free, hard))
        assert near.send(HEAD, bytes(MIB))
        far.until(lambda: len(far.frames) == 3)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for _ in range(3):
        near.send(HEAD, bytes(MIB))
    far.until(lambda: len(far.frames) == 6)


def test_a_frame_that_is_withdrawn_before_it_begins_does_not_arrive(ends, thread, until):
    near, far = ends
    second = Handle()
    one = thread(near.send, HEAD, bytes(40 * MIB))
    until(lambda: near.large._writer._queue)
    two = threading.Thread(target=lambda: near.send(HEAD, b"b" * MIB, handle=second))
    two.start()
    until(lambda: getattr(second.waiting, "waiting", None) is not None)
    assert second.waiting.withdraw() and not second.waiting.withdraw()
    two.join(10)
    assert not two.is_alive() and one.is_alive()
    far.open()
    one.join(20)
    near.send(HEAD, b"c")
    far.until(lambda: len(far.frames) == 2)
    assert sorted(map(len, far.frames)) == [len(HEAD) + 1, len(HEAD) + 40 * MIB]


def test_a_transfer_that_is_withdrawn_on_its_way_is_cut(ends, thread, until):
    near, far = ends
    handle = Handle()
    sending = thread(lambda: near.send(HEAD, bytes(40 * MIB), handle=handle))
    until(lambda: (transfer := getattr(handle.waiting, "waiting", None)) is not None and transfer._begun)
    assert handle.waiting.withdraw()
    sending.join(10)
    assert not sending.is_alive()  # although nobody reads
    far.open()
    near.send(HEAD, b"next" * MIB)
    far.until(lambda: bool(far.frames))
    assert far.frames == [HEAD + b"next" * MIB]


def test_a_thread_that_is_interrupted_leaves_the_socket_whole(ends):
    """Wherever in the writing Ctrl-C comes: the next frame arrives, and the interrupted one not in part."""
    near, far = ends
    body = bytes(20 * MIB)
    for milliseconds in (1, 5, 30, 100):
        signal.signal(signal.SIGALRM, lambda number, frame: shield(signal.SIGINT, frame))
        shield.install()
        try:
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)
                near.send(HEAD, body)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            shield.uninstall()
    far.open()
    near.send(HEAD, b"whole" * MIB)
    far.until(lambda: bool(far.frames))
    assert far.frames == [HEAD + b"whole" * MIB]


@pytest.mark.parametrize("closes", ["near", "far"])
def test_a_socket_that_closes_lets_the_sending_thread_go(ends, thread, until, closes):
    near, far = ends
    results = []
    sending = thread(lambda: results.append(near.send(HEAD, bytes(40 * MIB))))
    until(lambda: near.large._writer._queue)
    near.loop.run((near if closes == "near" else far).close())
    sending.join(10)
    assert results == [False]
    if closes == "far":
        near.until(lambda: bool(near.errors))
    assert not near.send(HEAD, bytes(MIB))


def test_a_transfer_that_the_memory_has_no_room_for_is_a_problem_of_its_message(ends, monkeypatch):
    near, far = ends
    monkeypatch.setattr(arrival, "CHECKED_BYTES", 0)
    monkeypatch.setattr(arrival, "available_bytes", lambda: 10 * MIB)
    far.open()
    near.send(HEAD, bytes(20 * MIB), bytes(3))
    near.send(HEAD, bytes(5 * MIB))
    far.until(lambda: len(far.frames) == 2)
    assert "20,971,520 bytes" in far.frames[0] and "free memory" in far.frames[0]
    assert far.frames[1] == HEAD + bytes(5 * MIB)


@pytest.mark.parametrize("name", ["no begin", "chunk without a begin", "a table of nonsense", "longer than its table"])
def test_nonsense_ends_the_socket(ends, name):
    near, far = ends
    data = {
        "no begin": bytes(9) + b"?",
        "chunk without a begin": b"\x02" + bytes(8),
        "a table of nonsense": b"\x01\x10" + bytes(7) + b"\x02\x10" + bytes(7) + b"\xff" * 16,
        "longer than its table": b"\x01\x14" + bytes(7) + b"\x02\x15" + bytes(7) + b"\x81abc" + bytes(17),
    }[name]
    near.bulk.send(data)
    far.open()
    far.until(lambda: bool(far.errors))
    assert isinstance(far.errors[0], SerializationError) and not far.frames


def test_thousands_of_parts_in_one_frame(ends):
    near, far = ends
    far.open()
    draw = random.Random(1)
    parts = [HEAD, *(draw.randbytes(draw.choice((10, 5000, SEGMENT_BYTES))) for _ in range(1000))]
    for _ in range(3):
        near.send(*parts)
    far.until(lambda: len(far.frames) == 3)
    assert set(far.frames) == {b"".join(parts)}


def test_what_the_peer_still_reads_is_sent_before_the_end(ends, until):
    near, far = ends
    frame = HEAD + bytes(20 * MIB)

    async def send_and_finish():
        near.send(frame[: len(HEAD)], frame[len(HEAD) :])
        far.loop.loop.call_later(0.05, lambda: asyncio.ensure_future(far._open()))
        await near.large.finish()

    near.loop.run(send_and_finish())
    far.until(lambda: bool(far.errors))
    assert (far.frames, far.errors) == ([frame], [None])
    gc.collect()


@pytest.fixture
def told(monkeypatch):
    """Warnings of readers. Pytest's own list loses those of other threads between a test's setup and its call."""
    texts = []
    monkeypatch.setattr(reader, "logger", SimpleNamespace(warning=lambda text, *values: texts.append(text % values)))
    return texts


def test_a_thread_that_reads_and_cannot_be_started_is_tried_again(told, ends, no_first_thread, monkeypatch):
    near, far = ends
    monkeypatch.setattr(reader, "READER_RETRY_SECONDS", 0.001)
    far.open()
    near.send(HEAD, bytes(MIB))
    far.until(lambda: bool(far.frames))
    assert far.frames == [HEAD + bytes(MIB)] and no_first_thread
    assert ["it is tried again" in each for each in told] == [True]
