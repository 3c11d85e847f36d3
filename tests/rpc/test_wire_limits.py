"""The limits of a message: how much fits, and the error beyond; and element types that NumPy alone does not know."""

import dataclasses
import resource

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import same
from telegrad import rpc
from telegrad.base.errors import SerializationError
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.wire import frames, tables

ml_dtypes = pytest.importorskip("ml_dtypes")
GIB = 1 << 30
OUTSIDE = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "int4", "uint4")


def describe(array):
    return type(array).__name__, array.dtype.name, array.shape


def zeros(size):
    return bytes(size)


class Heavy(Exception):
    """An error that carries a lot."""


def raise_heavy(size):
    raise Heavy("x" * size)


@pytest.fixture
def limited(cluster):
    """Two workers whose messages hold at most 1 MiB."""
    options = GrpcRpcBackendOptions(rpc_timeout=60, max_message_bytes=1 << 20)
    with cluster("a", "b", options=options) as agents, agents[0].use():
        yield agents


def shapes(kind):
    whole = np.arange(6).reshape(2, 3).astype(kind)
    empty = np.zeros((0, 3), kind)
    return {
        "whole": whole,
        "0-d": np.array(whole[1, 2]),
        "empty": empty,
        "transposed": whole.T,
        "strided": whole[:, ::2],
    }


@pytest.mark.parametrize("form", ["whole", "0-d", "empty", "transposed", "strided"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_arrays_of_types_from_outside_arrive_as_they_left(workers, name, form):
    array = shapes(getattr(ml_dtypes, name))[form]
    received = rpc.rpc_sync("b", same, (array,))
    assert (received.dtype, received.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(received.astype(float), array.astype(float))
    assert received.flags.writeable
    assert rpc.rpc_sync("b", describe, (array,)) == ("ndarray", name, array.shape)


@pytest.mark.parametrize("form", ["whole", "0-d", "empty", "transposed", "strided"])
def test_tensors_of_bfloat16_arrive_as_they_left(workers, form):
    tensor = tg.Tensor(shapes(ml_dtypes.bfloat16)[form], requires_grad=True)
    received = rpc.rpc_sync("b", same, (tensor,))
    assert (received.dtype, received.shape, received.requires_grad) == (tg.bfloat16, tensor.shape, True)
    assert received.tolist() == tensor.tolist()


@pytest.mark.parametrize(
    "array",
    [
        np.array("2020-01-01", "M8[D]"),
        np.array([1, 2], ">m8[ms]")[::-1],
        np.zeros((2, 0), "M8[ns]"),
        np.zeros((0, 2), [("a", "i4"), ("b", ">f8", (2,))]),
        np.array([(1, 2.0)] * 4, [("a", "i4"), ("b", "f8")])["b"][::2],
        np.array((1, 2.0), [("a", "i4"), ("b", "f8")]),
        np.zeros((0, 2), "U3"),
        np.array("text"),
        np.frombuffer(b"abcd", "V2"),
    ],
    ids=repr,
)
def test_arrays_of_records_dates_and_text_arrive_as_they_left(workers, array):
    received = rpc.rpc_sync("b", same, (array,))
    assert (type(received), received.dtype, received.shape) == (type(array), array.dtype, array.shape)
    assert received.tolist() == array.tolist()


def test_a_type_that_the_receiver_does_not_know_fails_its_call_and_not_the_connection(workers, monkeypatch):
    known = tables.find_dtype
    monkeypatch.setattr(tables, "find_dtype", lambda name: None if name == b"bfloat16" else known(name))
    tables.known.cache_clear()
    with pytest.raises(SerializationError, match="type bfloat16 arrived, which this worker does not know"):
        rpc.rpc_sync("b", describe, (np.zeros(3, ml_dtypes.bfloat16),))
    tables.known.cache_clear()
    assert rpc.rpc_sync("b", same, (np.ones(2),)).tolist() == [1, 1]


@pytest.mark.slow
def test_more_tensors_than_16_bits_count(workers):
    number = 70_000
    one, other = tg.tensor(1), [tg.ones(1) for _ in range(number)]
    assert rpc.rpc_sync("b", len, ([one, one, *other],), timeout=60) == number + 2


def test_more_references_and_buffers_than_16_bits_count():
    out = frames.Outgoing(1, 7, 0.0, 1)
    out.pickled, out.attached = [b"pickle"], frames.Attachments()
    out.attached.references, out.attached.buffers = [None] * 70_000, [memoryview(b"abc")] * 70_000
    out.attached.extras = {1: b"e" * 70_000}
    message = frames.decode(bytearray(b"".join(frames.encode(out))), True, frames.Incoming())
    assert (len(message.attached.references), len(message.attached.buffers), len(message.extras[1])) == (70_000,) * 3
    assert bytes(message.attached.buffers[-1]) == b"abc" and bytes(message.pickled) == b"pickle"


def test_a_message_over_the_limit_is_an_error_that_names_its_size(limited):
    for value in (bytes(2 << 20), "x" * (2 << 20), np.zeros(1 << 19), tg.zeros(1 << 19), [bytes(1 << 19)] * 3 + [b""]):
        if isinstance(value, list):
            value = [bytes(bytearray(part)) for part in value]  # three objects: pickle writes one object once
        with pytest.raises(SerializationError, match=r"bytes or more \(argument 0\).*limit is 1,048,576"):
            rpc.rpc_sync("b", same, (value,))
    assert rpc.rpc_sync("b", same, (bytes(1 << 19),)) == bytes(1 << 19)


def test_a_reply_over_the_limit_fails_its_call_by_name(limited):
    with pytest.raises(SerializationError, match=r"message of 2,\d+,\d+ bytes or more \(the result\)"):
        rpc.rpc_sync("b", zeros, (2 << 20,))
    with pytest.raises(SerializationError, match=r"raised .*Heavy, which is larger than"):
        rpc.rpc_sync("b", raise_heavy, (2 << 20,))


def test_five_gibibytes_are_refused_before_memory_is_used(workers):
    huge = bytes(5 * GIB)  # pages that nobody touched cost nothing
    vast = np.broadcast_to(np.zeros(1), (1 << 40,))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for value in (huge, [huge], vast):
        with pytest.raises(SerializationError, match=r"message of [\d,]{13,} bytes or more.*limit is 4,294,967,296"):
            rpc.rpc_sync("b", same, (value,))
    with pytest.raises(SerializationError, match=r"message of 5,\d+,\d+,\d+ bytes or more \(the result\)"):
        rpc.rpc_sync("b", zeros, (5 * GIB,))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024  # KiB


def test_a_pickle_of_more_than_32_bits_can_be_framed():
    """The lengths in a frame have 64 bits, whatever the limit is. Nothing is copied: the parts are the objects themselves."""
    huge = bytes(5 * GIB)
    out = frames.Outgoing(1, 7, 0.0, 1)
    out.pickled, out.attached = [b"x", huge], frames.Attachments()
    out.attached.tensors = [tg.ones(1)]
    parts = frames.encode(out)
    assert parts[2] is huge
    assert frames.TABLES.unpack_from(parts[0], frames.FRAME_HEAD.size)[-1] == len(huge) + 1


@pytest.mark.parametrize("wrong", [0, -1, 1.5, None])
def test_the_limit_is_a_whole_number_above_0(wrong):
    with pytest.raises(ValueError, match=r"max_message_bytes must be .*you gave"):
        GrpcRpcBackendOptions(max_message_bytes=wrong)


def test_the_options_document_every_field():
    for each in dataclasses.fields(GrpcRpcBackendOptions):
        assert (
            f"        {each.name}: " in GrpcRpcBackendOptions.__doc__
            or f"    {each.name}: " in GrpcRpcBackendOptions.__doc__
        )
