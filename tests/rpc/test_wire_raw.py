"""Bodies of bytes and arrays: they arrive as they were, in one piece if they are small, and bad ones are refused."""

import pickle
import struct
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from telegrad.base.errors import SerializationError
from telegrad.rpc.calls.codec import Codec
from telegrad.rpc.device_maps import NO_DEVICES
from telegrad.rpc.wire.frames import decode, encode
from telegrad.rpc.wire.header import Flag
from telegrad.rpc.wire.messages import Incoming, Outgoing
from telegrad.rpc.wire.raw_body import LEAD, MOST_INSIDE, ROW_HEAD, RawBody

LIMIT = 1_000_000
PEER = SimpleNamespace(same_main=True, versions="", devices=NO_DEVICES)
MATRIX = np.arange(6.0, dtype=np.float32).reshape(2, 3)
NUMBERS = np.arange(40.0)
INSIDE = {
    "nothing": [],
    "a matrix": [MATRIX],
    "a transposed matrix": [MATRIX.copy().T],
    "several": [MATRIX, np.arange(3, dtype=np.int8), np.array(2.5), np.zeros(0)],
    "another type": [np.ones(3, ml_dtypes.bfloat16)],
    "the most bytes": [np.ones(MOST_INSIDE, np.uint8)],
    "parts of one memory": [*NUMBERS[:12].reshape(3, 4)],
    "many parts of one memory": [*NUMBERS.reshape(10, 4)],
}
BESIDE = {
    "one byte more": [np.ones(MOST_INSIDE + 1, np.uint8)],
    "a matrix with gaps": [np.arange(12.0).reshape(3, 4)[:, :2]],
    "one number for all elements": [np.broadcast_to(np.float32(1), (2, 2))],
    "parts that overlap": [NUMBERS[start : start + 4] for start in (0, 6, 3)],
    "many parts, of which two overlap": [NUMBERS[start : start + 4] for start in (*range(0, 36, 4), 33)],
}


def packed(body, limit=LIMIT):
    message = Outgoing(1, 1, 0.0, 0)
    Codec(limit, "a").pack(message, body, PEER, lambda body: [("the body", body)])
    return message


def opened(frame, owned=True):
    return Codec(LIMIT, "b").open(decode(frame, owned, Incoming()))


def check_same(body, arrived):
    assert arrived.words == body.words and len(arrived.arrays) == len(body.arrays)
    for given, found in zip(body.arrays, arrived.arrays):
        assert found.dtype == given.dtype and found.shape == given.shape
        assert found.strides == given.strides or not given.size
        assert found.tobytes() == given.tobytes()


@pytest.mark.parametrize("owned", (True, False))
@pytest.mark.parametrize("arrays", INSIDE.values(), ids=INSIDE)
def test_small_arrays_travel_in_the_body(arrays, owned, monkeypatch):
    monkeypatch.setattr(pickle, "loads", None)
    body = RawBody(b"12 3 m", arrays)
    frame = b"".join(encode(packed(body)))
    assert not frame[1] & Flag.TABLES
    arrived = opened(bytearray(frame) if owned else frame, owned)
    check_same(body, arrived)
    assert all(each.flags.writeable and each.flags.aligned for each in arrived.arrays)


@pytest.mark.parametrize("arrays", BESIDE.values(), ids=BESIDE)
def test_other_arrays_are_in_the_tables(arrays):
    body = RawBody(b"12 3 m", arrays)
    frame = b"".join(encode(packed(body)))
    assert frame[1] & Flag.TABLES
    check_same(body, opened(bytearray(frame)))


def test_arrays_that_share_memory_still_share_it():
    arrays = opened(bytearray(b"".join(encode(packed(RawBody(b"", [MATRIX, MATRIX[0]])))))).arrays
    arrays[0][0, 1] = 77
    assert arrays[1][1] == 77


def test_a_message_with_extras_has_the_same_body():
    body = RawBody(b"12", [MATRIX, MATRIX.copy().T])
    message = packed(body)
    message.tell(9, b"an interceptor's")
    check_same(body, opened(bytearray(b"".join(encode(message)))))


@pytest.mark.parametrize("size", (2_000, 200_000))
def test_one_that_is_too_large_is_refused(size):
    with pytest.raises(SerializationError, match="the limit is 1,000 bytes"):
        packed(RawBody(b"", [np.zeros(size, np.uint8)]), limit=1000)


def row(name, shape, strides=()):
    numbers = struct.pack(f"<{len(shape)}Q{len(strides)}q", *shape, *strides)
    return ROW_HEAD.pack(len(name), len(shape), bool(strides)) + name + numbers


BAD = {
    "gaps": (row(b"<f4", (2, 3), (4, 80)), "has gaps"),
    "strides backwards": (row(b"<f4", (2, 3), (4, -8)), "has gaps"),
    "too many elements": (row(b"<f4", (1 << 60, 3)), "whose rows say"),
    "too few bytes": (row(b"<f4", (400,)), "whose rows say"),
    "an unknown type": (row(b"float7", (2,)), "not known"),
    "objects": (row(b"|O", (2,)), "not known"),
}


@pytest.mark.parametrize("rows, reason", BAD.values(), ids=BAD)
def test_rows_that_do_not_fit_are_refused(rows, reason):
    message = packed(RawBody(b"", []))
    message.pickled = (LEAD.pack(len(rows), 0) + rows + bytes(100),)
    with pytest.raises(SerializationError, match=reason):
        opened(bytearray(b"".join(encode(message))))


@pytest.mark.parametrize("body", (b"", b"short", LEAD.pack(1 << 31, 5), LEAD.pack(2, 0) + b"xy", LEAD.pack(0, 9)))
def test_a_body_that_ends_early_is_refused(body):
    message = packed(RawBody(b"", []))
    message.pickled = (body,)
    with pytest.raises((SerializationError, struct.error)):
        opened(bytearray(b"".join(encode(message))))
