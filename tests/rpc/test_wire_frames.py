"""Frames: read as they were written, and what a corrupt one does."""

import pickle
import struct

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import same
from telegrad import rpc
from telegrad.rpc.calls.codec import Codec
from telegrad.rpc.wire import small_frames
from telegrad.rpc.wire.frames import TABLES, decode, encode
from telegrad.rpc.wire.header import FRAME_HEAD, FrameKind
from telegrad.rpc.wire.libraries.array_library import ArrayLibrary, LibraryTensor, PackedArray
from telegrad.rpc.wire.messages import Attachments, Incoming, Outgoing

ARRAYS = [np.array(1.5), np.zeros((0, 3)), np.arange(3, dtype=">f8"), np.ones(2, np.float16)]


def send(value):
    return rpc.rpc_sync("b", abs, (value,))


def frame_of(*parts):
    return b"".join(bytes(part) for part in parts)


def message(**fields):
    made = Outgoing(1, 7, 2.5, 1)
    made.attached = Attachments()
    for name, value in fields.items():
        setattr(made.attached if hasattr(Attachments, name) else made, name, value)
    return made


def test_a_frame_is_read_as_it_was_written():
    tensors = [tg.tensor(array) for array in ARRAYS]
    out = message(
        pickled=[b"pick", b"le"], tensors=tensors, extras={1: b"one", 2: b""}, buffers=[memoryview(b"raw")], flags=2
    )
    for owned in (True, False):
        read = decode(bytearray(frame_of(*encode(out))), owned, Incoming())
        assert (read.method, read.call_id, read.timeout) == (1, 7, 2.5)
        assert bytes(read.pickled) == b"pickle"
        assert read.extras == {1: b"one", 2: b""}
        assert [bytes(buffer) for buffer in read.attached.buffers] == [b"raw"]
        for array, tensor in zip(read.attached.arrays, tensors):
            assert array.flags.writeable
            assert array.flags.aligned
            np.testing.assert_array_equal(array, tensor.numpy())


SMALL = {
    "one": ARRAYS[:1],
    "several": ARRAYS,
    "two in the same memory": [ARRAYS[2], ARRAYS[2][:2]],
    "one that is transposed": [np.ones((2, 3)).T],
    "the most bytes in one part": [np.zeros(small_frames.MOST_JOINED, np.int8)],
    "one byte more": [np.zeros(small_frames.MOST_JOINED + 1, np.int8)],
    "many": [np.ones(1)] * 9,
}


BESIDE = {
    "nothing": {},
    "a name": {"pickled": [b"name"]},
    "parts": {"pickled": [b"a name", b" in parts"]},
    "extras": {"pickled": [b"name"], "extras": {1: b"one", 2: b""}},
    "references": {"pickled": [b"name"], "references": [object()] * 2, "extras": {3: b"two references"}},
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("arrays", SMALL.values(), ids=SMALL)
def test_frames_of_a_few_small_tensors_have_the_same_bytes(arrays, beside, monkeypatch):
    tensors = [tg.from_numpy(each).requires_grad_(each.dtype == np.float64) for each in arrays]
    quick = message(tensors=tensors, **beside)
    frame = frame_of(*encode(quick))
    monkeypatch.setattr(small_frames, "MOST_SMALL", 0)
    usual = message(tensors=tensors, **beside)
    assert frame_of(*encode(usual)) == frame
    assert quick.size == usual.size == len(frame)


def test_a_small_message_in_a_context_is_one_part():
    """Before, there were two, and a padding, which the lane had to join or to send from three places."""
    tensors = [LibraryTensor(ArrayLibrary(), None, PackedArray(np.ones(3))), tg.ones(2)]
    out = message(pickled=[b"name"], tensors=tensors, references=[object()], extras={1: b"its id"})
    (frame,) = encode(out)
    read = decode(bytearray(frame), True, Incoming())
    assert [array.tolist() for array in read.attached.arrays] == [[1.0] * 3, [1.0] * 2]
    assert bytes(read.pickled) == b"name" and read.extras == {1: b"its id"} and read.attached.references == [None]


@pytest.mark.parametrize("count", [1, 3, 100], ids=["one", "few", "more than are remembered"])
def test_arrays_of_one_kind_are_found_in_every_frame_that_has_them(count):
    """Wherever they begin, whatever they hold, whatever else is in the frame."""
    for length in (1, 7, 30, 7):
        tensors = [tg.full((2, 3), float(length * number)) for number in range(count)]
        out = message(pickled=[b"x" * length], tensors=tensors, extras={length: b"e"}, buffers=[bytes(length)])
        read = decode(bytearray(frame_of(*encode(out))), True, Incoming())
        assert [array.tolist() for array in read.attached.arrays] == [tensor.tolist() for tensor in tensors]
        assert bytes(read.pickled) == b"x" * length and bytes(read.attached.buffers[0]) == bytes(length)
        assert read.extras == {length: b"e"}


REQUEST = frame_of(*encode(message(pickled=[b"p"], tensors=[tg.ones(2)])))
CORRUPT = {
    "empty": b"",
    "one byte": b"\x01",
    "half a header": REQUEST[:11],
    "half a table": REQUEST[: FRAME_HEAD.size + 5],
    "half an array": REQUEST[:-5],
    "a kind that there is not": b"\x6e" + REQUEST[1:],
    "a method that there is not": frame_of(*encode(message(method=999, pickled=[b"p"]))),
    "a huge shape": REQUEST[: FRAME_HEAD.size + TABLES.size]
    + struct.pack("<BBB3sQ", 0, 3, 1, b"<f8", 2**60)
    + REQUEST[-30:],
    "control of half a message": FRAME_HEAD.pack(FrameKind.CONTROL, 0, 0, 0, 0.0) + b"abc",
    "half an acknowledgement": FRAME_HEAD.pack(FrameKind.ACKNOWLEDGE, 0, 0, 0, 0.0)[:9],
    "an extra of an interceptor that is cut off": frame_of(*encode(message(pickled=[b"p"], extras={1: b"cut"}))),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_corrupt_frame_of_a_peer_ends_its_session_and_nothing_else(workers, name, caplog, until):
    a, b, _ = workers
    assert send(1) == 1
    session = a.peers.find("b").link.dialed
    session.send([CORRUPT[name]])
    until(lambda: a.peers.find("b").link.dialed is not session or "a method that" in name)
    assert send(2) == 2  # over a new session
    assert not b.closed
    if name != "a method that there is not":
        assert "worker 'b' closes a connection to worker 'a'" in caplog.text


@pytest.mark.parametrize("kind", [FrameKind.REQUEST, FrameKind.REPLY], ids=["request", "reply"])
def test_a_pickle_that_is_cut_off_fails_its_call(workers, kind, monkeypatch):
    pack = Codec.pack

    def cut_off(codec, message, *args):
        pack(codec, message, *args)
        if message.kind == kind:
            message.pickled = [b"".join(message.pickled)[:-3]]

    monkeypatch.setattr(Codec, "pack", cut_off)
    future = rpc.rpc_async("b", same, ("x" * 100,))
    with pytest.raises((EOFError, pickle.UnpicklingError)):
        future.wait()
    monkeypatch.undo()
    assert send(3) == 3
