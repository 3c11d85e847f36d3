"""Large frames in units: put together in their memory, cut, withdrawn, restamped, and on a gRPC stream that has little room."""

import asyncio
import random
from collections import deque
from types import SimpleNamespace

import pytest
from telegrad.base.errors import SerializationError
from telegrad.rpc.call_states import ADMITTED
from telegrad.rpc.lanes.frame import HEAD_BYTES, FrameHandle
from telegrad.rpc.lanes.grpc_bulk import GRPC_CHUNK_BYTES, MOST_CHUNKS_WAITING, GrpcBulkPipe
from telegrad.rpc.lanes.large import transfer
from telegrad.rpc.lanes.large.chunk_size import ChunkSize
from telegrad.rpc.lanes.large.incoming import TransferAssembly
from telegrad.rpc.lanes.large.transfer import UNIT_HEAD, Kind, Transfer

CHUNK = 100


class Handle(FrameHandle):
    """Handle whose frame says from a late moment on how much time is left."""

    def restamp(self, head):
        return bytes(len(head))


class Taken:
    """Target of units that has room for some bytes."""

    def __init__(self, room=1 << 40):
        self.data = b""
        self.room = room

    def sendmsg(self, parts, *_):
        fresh = b"".join(parts)[: self.room]
        if not fresh:
            raise BlockingIOError
        self.room -= len(fresh)
        self.data += fresh
        return len(fresh)


def assembly(frames, most=1 << 20):
    return TransferAssembly(
        lambda size: memoryview(bytearray(size)), lambda frame: frames.append(bytes(frame)), None, most
    )


def assembled(data):
    frames = []
    assembly(frames).message(data)
    return frames


@pytest.mark.parametrize("seed", range(3))
def test_a_frame_is_put_together_however_it_was_cut(seed):
    draw = random.Random(seed)
    parts = [draw.randbytes(draw.choice((1, CHUNK - 1, CHUNK, 3 * CHUNK + 5))) for _ in range(draw.randrange(1, 9))]
    target, sent = Taken(), Transfer(parts, (), None, ChunkSize(CHUNK, CHUNK))
    while not sent.write(target):
        pass
    assert assembled(target.data * 2) == [b"".join(parts)] * 2


def test_a_frame_that_had_to_wait_says_how_much_time_is_left_now(monkeypatch):
    for late, head in ((-1.0, bytes(HEAD_BYTES)), (1000.0, b"h" * HEAD_BYTES)):
        monkeypatch.setattr(transfer, "LATE_SECONDS", late)
        target, sent = Taken(), Transfer([b"h" * HEAD_BYTES, b"rest" * CHUNK], (), Handle(), ChunkSize(CHUNK, CHUNK))
        while not sent.write(target):
            pass
        assert assembled(target.data) == [head + b"rest" * CHUNK]


def test_a_transfer_that_has_not_begun_leaves_nothing():
    target, sent = Taken(), Transfer([bytes(3 * CHUNK)], (), None, ChunkSize(CHUNK, CHUNK))
    assert sent.withdraw() and not sent.withdraw()
    assert sent.write(target) and not target.data


def test_the_receiver_drops_a_transfer_that_was_cut():
    target, sent = Taken(), Transfer([bytes(3 * CHUNK)], (), None, ChunkSize(CHUNK, CHUNK))
    for _ in range(2):
        assert not sent.write(target)
    assert sent.withdraw()
    while not sent.write(target):
        pass
    whole = Transfer([b"w" * CHUNK], (), None)
    while not whole.write(target):
        pass
    assert assembled(target.data) == [b"w" * CHUNK]


def test_a_unit_of_which_nothing_has_left_can_be_withdrawn():
    for room, left in ((0, b""), (2 * UNIT_HEAD.size + CHUNK, UNIT_HEAD.pack(Kind.CUT, 0))):
        target, sent = Taken(room), Transfer([b"x" * (CHUNK + 1)], (), None, ChunkSize(CHUNK, CHUNK))
        with pytest.raises(BlockingIOError):
            while not sent.write(target):
                pass
        first = target.data
        assert sent.withdraw()
        target.room = 1 << 40
        while not sent.write(target):
            sent.release()  # as the writer does before each write of a transfer that was withdrawn
        assert target.data == first + left


def test_a_transfer_whose_last_chunk_has_left_cannot_be_withdrawn():
    target, sent = Taken(), Transfer([bytes(CHUNK + 1)], (), None, ChunkSize(CHUNK, CHUNK))
    for _ in range(2):
        sent.write(target)
    assert not sent.withdraw()


def test_a_transfer_is_withdrawn_in_one_step():
    """The other thread finds no room for the last chunk just as this one withdraws: both must say the same of it."""

    class Handed:
        """Lock after whose first use the other thread takes back the chunk."""

        def __enter__(self):
            pass

        def __exit__(self, *_):
            if not uses:
                uses.append(1)
                sent._undo_unit(-1)

    uses, sent = [], Transfer([bytes(CHUNK)], (), None, ChunkSize(CHUNK, CHUNK))
    sent._begin_unit()
    sent._lock = Handed()
    assert not sent.withdraw() and uses and not sent.withdrawn


BEGIN, FRAME = UNIT_HEAD.pack(Kind.BEGIN, 600), UNIT_HEAD.pack(Kind.CHUNK, 600)
WRONG = {
    "more than there is memory": (UNIT_HEAD.pack(Kind.BEGIN, 1001), "exceeds this machine's memory"),
    "nothing": (UNIT_HEAD.pack(Kind.BEGIN, 0), "between two transfers"),
    "two beginnings": (BEGIN + BEGIN, "in the middle of a transfer"),
    "a chunk of no transfer": (FRAME, "between two transfers"),
    "a cut of no transfer": (UNIT_HEAD.pack(Kind.CUT, 0), "between two transfers"),
    "an offer": (UNIT_HEAD.pack(Kind.OFFER, 1), "between two transfers"),
    "an empty chunk": (BEGIN + UNIT_HEAD.pack(Kind.CHUNK, 0), "in the middle of a transfer"),
    "a chunk that is too long": (BEGIN + UNIT_HEAD.pack(Kind.CHUNK, 601) + bytes(601), "longer than its front says"),
    "half a chunk": (BEGIN + FRAME + bytes(599), "in the middle of a chunk"),
    "half a header": (BEGIN + FRAME[:5], "in the middle of a unit's header"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_unit_claims_is_checked_before_memory_is_taken(name):
    data, reason = WRONG[name]
    frames = []
    with pytest.raises(SerializationError, match=reason):
        assembly(frames, most=1000).message(data)
    assert not frames


# -- on a gRPC stream


class Stream:
    """Stream whose messages leave when the test says so."""

    def __init__(self, loop):
        self._loop = loop
        self._under_way = deque()
        self._free = 0  # messages that may leave as soon as they come
        self.messages = []

    async def write(self, message):
        self.messages.append(message)
        self._under_way.append(left := self._loop.create_future())
        self._loop.call_soon_threadsafe(self.let_go, 0)
        await left

    async def read(self):
        await asyncio.Event().wait()

    def let_go(self, count):
        self._free += count
        while self._free and self._under_way:
            self._free -= 1
            self._under_way.popleft().set_result(None)


@pytest.fixture
def pipe(loop):
    """A pipe for large frames on the loop; ``opened`` opens its stream."""

    async def make():
        made = GrpcBulkPipe(
            asyncio.get_running_loop(), SimpleNamespace(take=None, trim_in_a_while=lambda loop: None), lambda: None
        )
        made.stream = Stream(asyncio.get_running_loop())
        return made

    async def opened():
        running.append(asyncio.ensure_future(made.run(made.stream.read, made.stream.write, print)))
        while made._stream.outbox.write is None:
            await asyncio.sleep(0)

    async def end():
        made.close()
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    running, made = [], loop.run(make())
    made.opened = lambda: loop.run(opened())
    yield made
    loop.run(end())


def units(pipe):
    return b"".join(pipe.stream.messages)


def let_go(loop, pipe, count):
    loop.loop.call_soon_threadsafe(pipe.stream.let_go, count)


def test_a_thread_copies_only_a_few_chunks_ahead(pipe, loop, until, thread):
    chunks = MOST_CHUNKS_WAITING + 4
    pipe.opened()
    parts, sent = [b"h", b"x" * (chunks * GRPC_CHUNK_BYTES - 1)], []
    sending = thread(lambda: sent.append(pipe.send(parts, chunks * GRPC_CHUNK_BYTES, None)))
    outbox = pipe._stream.outbox.items
    until(lambda: len(outbox) == MOST_CHUNKS_WAITING)
    let_go(loop, pipe, 1)
    until(lambda: len(pipe.stream.messages) == 2 and len(outbox) == MOST_CHUNKS_WAITING)
    assert not sent
    let_go(loop, pipe, chunks)
    sending.join(30)
    until(lambda: len(pipe.stream.messages) == chunks)
    frames = []
    assembly(frames, 1 << 30).message(units(pipe))
    assert sent == [True] and frames == [b"".join(parts)]


def test_frames_that_come_before_the_stream_is_open_leave_when_it_is(pipe, loop, until):
    frames, sent = [], [b"first" * CHUNK, b"second" * CHUNK]
    for each in sent:
        assert pipe.send([each[:1], each[1:]], len(each), Handle())  # waits for nothing
    pipe.opened()
    let_go(loop, pipe, 2)
    until(lambda: len(pipe.stream.messages) == 2)
    assembly(frames).message(units(pipe))
    assert frames == sent


def test_frames_of_a_stream_that_never_opened_can_be_sent_another_way(pipe, loop):
    handles = [Handle() for _ in range(3)]
    for number, handle in enumerate(handles):
        assert pipe.send([b"h", bytes([number]) * CHUNK], 1 + CHUNK, handle)
    assert handles[1].withdraw()

    async def close():
        pipe.close()

    loop.run(close())
    assert pipe.take_unsent() == [(b"h" + bytes([number]) * CHUNK, handles[number]) for number in (0, 2)]
    assert not pipe.take_unsent() and not handles[0].withdraw()
    late = Handle()
    assert not pipe.send([b"late"], 4, late) and late.state is ADMITTED


def test_a_frame_is_withdrawn_while_it_waits_for_the_stream(pipe, loop, until):
    pipe.opened()
    first, second = Handle(), Handle()
    for handle in (first, second):
        assert pipe.send([bytes((MOST_CHUNKS_WAITING + 2) * GRPC_CHUNK_BYTES)], 1, handle)  # one part waits for nothing
    outbox = pipe._stream.outbox.items
    until(lambda: len(outbox) == MOST_CHUNKS_WAITING)
    assert first.withdraw() and second.withdraw()
    let_go(loop, pipe, MOST_CHUNKS_WAITING + 2)
    until(lambda: UNIT_HEAD.pack(Kind.CUT, 0) in pipe.stream.messages)
    assert len(pipe.stream.messages) == MOST_CHUNKS_WAITING + 2


def test_the_end_of_a_stream_lets_a_waiting_thread_go(pipe, loop, until, thread):
    pipe.opened()
    size, handle, sent = (MOST_CHUNKS_WAITING + 2) * GRPC_CHUNK_BYTES, Handle(), []
    sending = thread(lambda: sent.append(pipe.send([b"h", bytes(size - 1)], size, handle)))
    outbox = pipe._stream.outbox.items
    until(lambda: len(outbox) == MOST_CHUNKS_WAITING)

    async def close():
        pipe.close()

    loop.run(close())
    sending.join(30)
    assert sent == [False] and handle.state is ADMITTED


def test_the_loop_is_called_once_for_each_message_that_leaves(pipe, loop, until, monkeypatch):
    """A frame for which no thread waits: the loop is called when there is room, and not more often."""
    chunks, calls = MOST_CHUNKS_WAITING + 6, []
    write = pipe._writer._write_on_loop
    monkeypatch.setattr(pipe._writer, "_write_on_loop", lambda: (calls.append(1), write()))
    pipe.opened()
    assert pipe.send([bytes(chunks * GRPC_CHUNK_BYTES)], 1, None)
    outbox = pipe._stream.outbox.items
    for left in range(chunks - 1, -1, -1):
        until(lambda left=left: len(outbox) == min(MOST_CHUNKS_WAITING, left))
        let_go(loop, pipe, 1)
    until(lambda: len(pipe.stream.messages) == chunks)
    assert not pipe._writer._queue and pipe._stream._when_room is None
    assert len(calls) <= chunks - MOST_CHUNKS_WAITING + 1


def test_the_loop_is_not_called_while_a_thread_waits_for_room(pipe, loop, until, thread, monkeypatch):
    chunks, calls = MOST_CHUNKS_WAITING + 6, []
    monkeypatch.setattr(pipe._writer, "_write_on_loop", lambda: calls.append(1))
    pipe.opened()
    sending = thread(lambda: pipe.send([b"h", bytes(chunks * GRPC_CHUNK_BYTES - 1)], 1, None))
    let_go(loop, pipe, chunks)
    sending.join(30)
    until(lambda: len(pipe.stream.messages) == chunks)
    assert not calls
