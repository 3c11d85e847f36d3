"""Scattered frames: their table, and reading them as if they were whole."""

import itertools
import random

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import SerializationError
from telegrad.rpc.lanes.large.scattered import FramePiece, Notices, ScatteredFrame, decode_table, encode_table
from telegrad.rpc.wire.frames import decode, encode
from telegrad.rpc.wire.messages import Attachments, Incoming, Outgoing


def scatter(parts, apart):
    """Return the frame of ``parts``; those of which ``apart`` holds the index are pieces."""
    starts = list(itertools.accumulate(map(len, parts), initial=0))
    front = bytearray().join(part for index, part in enumerate(parts) if index not in apart)
    return ScatteredFrame(
        memoryview(front), [starts[i] for i in apart], [memoryview(bytearray(parts[i])) for i in apart]
    )


@pytest.mark.parametrize("seed", range(20))
def test_any_range_of_a_scattered_frame_reads_as_that_of_the_whole(seed):
    draw = random.Random(seed)
    parts = [draw.randbytes(draw.choice((1, 3, 16, 40))) for _ in range(8)]
    whole = b"".join(parts)
    frame = scatter(parts, sorted(draw.sample(range(8), draw.randrange(8))))
    assert len(frame) == len(whole)
    for start, stop in itertools.combinations(range(len(whole) + 1), 2):
        assert bytes(frame.read(start, stop - start)) == whole[start:stop]


def test_a_piece_is_read_without_a_copy_and_the_front_with_one():
    frame = scatter([b"head", b"piece!", b"tail"], [1])
    frame.read(4, 6)[:] = b"PIECE?"
    frame.read(0, 4)[:] = b"HEAD"
    assert bytes(frame.read(0, 14)) == b"headPIECE?tail"


def test_a_range_beyond_the_end_is_an_error():
    with pytest.raises(SerializationError, match="14"):
        scatter([b"head", b"piece!"], [1]).read(8, 6)


@pytest.mark.parametrize("notices", [Notices(), Notices((1, 2), (), (3,)), Notices((), (2**63,), ())])
def test_a_table_is_read_as_it_was_written(notices):
    pieces = [FramePiece(24, 2**40, 0), FramePiece(2**41, 5, 7)]
    front, read, told = decode_table(memoryview(b"front" + encode_table(pieces, notices)))
    assert (bytes(front), read, told) == (b"front", pieces, notices)


@pytest.mark.parametrize("data", [b"", b"short", encode_table([FramePiece(1, 2, 3)], Notices())[1:], b"\xff" * 16])
def test_a_corrupt_table_is_an_error(data):
    with pytest.raises(SerializationError, match="scattered frame"):
        decode_table(memoryview(data))


def message(**fields):
    made = Outgoing(1, 7, 2.5, 1)
    made.attached = Attachments()
    for name, value in fields.items():
        setattr(made.attached if hasattr(Attachments, name) else made, name, value)
    return made


def test_messages_decode_from_scattered_frames():
    tensors = [tg.arange(n) for n in (3, 1000, 5, 2000, 0)]
    out = message(pickled=[b"pick", b"l" * 500, b"e"], tensors=tensors, buffers=[memoryview(b"raw")])
    parts = [bytes(part) for part in encode(out)]
    large = [index for index, part in enumerate(parts) if len(part) >= 500 and index]
    assert len(large) == 3
    read = decode(scatter(parts, large), False, Incoming())
    assert bytes(read.pickled) == b"pick" + b"l" * 500 + b"e"
    assert [bytes(buffer) for buffer in read.attached.buffers] == [b"raw"]
    for array, tensor in zip(read.attached.arrays, tensors, strict=True):
        assert array.flags.writeable and array.flags.aligned
        np.testing.assert_array_equal(array, tensor.numpy())


def test_a_message_whose_pieces_could_not_be_received_says_why():
    tensors = [tg.ones(1000)]
    parts = [bytes(part) for part in encode(message(pickled=[b"pickle"], tensors=tensors))]
    frame = ScatteredFrame(memoryview(parts[0]), [], [], "there was no room", missing=4000)
    assert len(frame) == len(parts[0]) + 4000
    assert decode(frame, True, Incoming()).attached.problem == "there was no room"
