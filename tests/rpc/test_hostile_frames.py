"""Frames that a worker of the job has spoiled, by accident or on purpose: none harms more than the session it came on."""

import random
import struct
import tracemalloc
from functools import partial

import numpy as np
import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import SerializationError
from telegrad.rpc.calls.replies import Reply
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.rpc.lanes.large.scattered import FramePiece, Notices, ScatteredFrame, decode_table, encode_table
from telegrad.rpc.wire import control
from telegrad.rpc.wire.control import ControlMessage
from telegrad.rpc.wire.frames import decode, encode
from telegrad.rpc.wire.header import FrameKind
from telegrad.rpc.wire.layout import Place, placed
from telegrad.rpc.wire.messages import Attachments, Incoming, Outgoing
from telegrad.testing.cluster import in_process_cluster

NUMBERS = (0, 1, 2, 127, 255, 256, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
MOST_BYTES = 4 << 20  # that the reading of a frame of some hundred bytes may take
REFUSALS = (SerializationError, struct.error, ValueError, LookupError, TypeError, OverflowError)


def joined(parts):
    return b"".join(bytes(part) for part in parts)


def message(*tensors, kind=FrameKind.REQUEST, **fields):
    made = (Outgoing if kind == FrameKind.REQUEST else Reply)(
        999, 7, 2.5, 1
    )  # nothing serves that method, or unpickles it
    made.pickled, made.attached = [b"no pickle"], Attachments()
    made.attached.tensors = list(tensors)
    for name, value in fields.items():
        setattr(made.attached if hasattr(Attachments, name) else made, name, value)
    return joined(encode(made))


MATRIX = tg.arange(6.0).reshape(2, 3)
FRAMES = [
    message(),
    message(MATRIX, tg.ones(2, dtype=tg.float16)),
    message(MATRIX, MATRIX.t(), MATRIX[:, 1:], MATRIX.expand(2, 2, 3)),
    message(tg.tensor(1.5), extras={1: b"one", 9: b""}, buffers=[memoryview(b"raw"), memoryview(b"")]),
    message(MATRIX, kind=FrameKind.REPLY, references=[object()] * 3),
]
SMALL = {
    "control": (
        lambda frame: list(control.decode_control(frame)),
        [ControlMessage(1, b"one", 16), ControlMessage(2, b"", 17)],
    ),
    "acknowledgement": (control.decode_acknowledgement, [1, 2, 5]),
    "done": (control.decode_done, [3, 1 << 60]),
    "relay": (control.decode_relay, None),
    "credit": (control.decode_amount, None),
    "goodbye": (control.decode_goodbye, None),
}
MAKE = {
    "control": control.encode_control,
    "acknowledgement": control.encode_acknowledgement,
    "done": lambda ids: [control.encode_done(ids)],
    "relay": lambda _: control.encode_relay(1, 2, 3, b"inner"),
    "credit": lambda _: control.encode_credit((5, 6)),
    "goodbye": lambda _: control.encode_goodbye("an end", True, b"report"),
}


def spoiled(frame, chance, begin=0):
    """Return a frame with some changes behind ``begin``: bits, numbers that are too large, pieces cut out or repeated."""
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(begin, max(len(data), begin + 1))
        match chance.randrange(5):
            case 0:
                data[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                size = chance.choice((1, 2, 4, 8))
                data[place : place + size] = (chance.choice(NUMBERS) % (1 << 8 * size)).to_bytes(size, "little")
            case 2:
                del data[place : place + chance.randint(1, 9)]
            case 3:
                data[place:place] = data[max(place - 24, begin) : place]
            case 4:
                del data[place:]
    return bytes(data)


def extent(array):
    """Return how many bytes an array spans, in numbers that cannot overflow."""
    steps = [abs((length - 1) * stride) for length, stride in zip(array.shape, array.strides)]
    return sum(steps) + array.itemsize if array.size else 0


def read(frame, chance):
    """Read a frame in each of the ways in which it may arrive."""
    for owned in (True, False):
        arrived = decode(bytearray(frame), owned, Incoming())
        for array in arrived.attached.arrays:
            assert extent(array) <= len(frame), (array.shape, array.strides)
    at = chance.randrange(len(frame) + 1)
    size = chance.randrange(64)
    piece = memoryview(bytearray(size))
    decode(ScatteredFrame(memoryview(bytearray(frame)), [at], [piece]), True, Incoming())


def refused(function, *args):
    """Return whether a function refuses its arguments, and check that it takes little memory."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        function(*args)
    except REFUSALS:
        return True
    finally:
        taken = tracemalloc.get_traced_memory()[1] - before
        assert taken < MOST_BYTES, f"{taken} bytes were taken to read {args!r}"
    return False


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("seed", range(4))
def test_a_spoiled_message_is_read_or_refused(seed, traced):
    chance = random.Random(seed)
    outcomes = [refused(read, spoiled(chance.choice(FRAMES), chance), chance) for _ in range(400)]
    assert any(outcomes) and not all(outcomes)


@pytest.mark.parametrize(
    ("shape", "strides", "memory"),
    [((2, 2), ((1 << 63) - 1, 4), 64), ((2, 1 << 48), (12, 4), 0), ((2, 2), (-8, 4), 64), ((3,), (4,), 8)],
)
def test_an_array_outside_of_its_buffer_is_refused(shape, strides, memory):
    """NumPy makes the first two, which then read and write memory of others."""
    with pytest.raises(ValueError, match="not within a buffer"):
        placed(shape, np.dtype("<f4"), bytearray(memory), Place(None, 0, strides))


def test_an_empty_array_is_within_any_buffer():
    assert placed((0, 3), np.dtype("<f4"), bytearray(), Place(None, 0, (12, 4))).shape == (0, 3)


@pytest.mark.parametrize("kind", SMALL)
def test_a_spoiled_control_frame_is_read_or_refused(kind, traced):
    chance = random.Random(kind)
    read_small, given = SMALL[kind]
    frame = joined(MAKE[kind](given))
    read_small(frame)
    outcomes = [refused(read_small, spoiled(frame, chance)) for _ in range(400)]
    assert not all(outcomes)


def test_a_spoiled_table_of_pieces_is_read_or_refused(traced):
    chance = random.Random(5)
    table = encode_table([FramePiece(1, 2, 3), FramePiece(4, 5, 6)], Notices((1,), (), (2, 3)))
    outcomes = [refused(decode_table, memoryview(spoiled(b"front" + table, chance))) for _ in range(400)]
    assert any(outcomes)


def identity(value):
    return value


@pytest.mark.slow
@pytest.mark.parametrize("lane", ["unix", "grpc"])
def test_a_worker_that_sends_spoiled_frames_harms_nobody_else(lane, until, caplog):
    """Every kind but the two that say that a worker leaves: whoever sends those means its own end, or the other's."""
    chance = random.Random(lane)
    kinds = [kind for kind in ("control", "acknowledgement", "done", "relay", "credit") for _ in range(3)]
    frames = [*FRAMES, *(joined(MAKE[kind](SMALL[kind][1])) for kind in kinds)]
    make_lane = partial(GrpcLane, ("unix",) if lane == "unix" else ())
    options = GrpcRpcBackendOptions(rpc_timeout=60)
    with in_process_cluster("a", "b", "c", options=options, make_lane=make_lane) as (a, b, c):
        for _ in range(40):
            session = b.sessions.route(b.peers.find("a"))
            for _ in range(5):
                session.send([spoiled(chance.choice(frames), chance, begin=1)])
        with a.use():
            assert rpc.rpc_sync("c", identity, (np.arange(3),)).sum() == 3
        with c.use():
            assert rpc.rpc_sync("a", identity, (5,)) == 5
        until(lambda: "worker 'a' closes a connection to worker 'b'" in caplog.text)
        assert not (a.closed or b.closed or c.closed)
        assert "worker 'c' closes" not in caplog.text, "frames that come through 'a' are no fault of its"
