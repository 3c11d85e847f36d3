"""Values that travel: every kind comes out as it went in, captured when it was sent, and is the receiver's own."""

import threading

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import same
from telegrad import rpc
from telegrad.base.errors import SerializationError
from telegrad.rpc.lanes.grpc_bulk import GRPC_CHUNK_BYTES

ARRAYS = {
    "0-d": np.array(3.5),
    "empty": np.zeros((0, 3)),
    "empty 1-d": np.array([], np.int8),
    "bool": np.array([True, False]),
    "int8": np.arange(5, dtype=np.int8),
    "uint64": np.array([2**64 - 1], np.uint64),
    "float16": np.ones(3, np.float16),
    "float32": np.ones((2, 3), np.float32),
    "longdouble": np.ones(2, np.longdouble),
    "complex64": np.array([1 + 2j], np.complex64),
    "complex128": np.array([[1 + 2j]]),
    "big-endian": np.arange(4, dtype=">f8"),
    "big-endian int": np.arange(4, dtype=">i2"),
    "text": np.array(["ab", "c"]),
    "bytes": np.array([b"x", b"yz"]),
    "datetime": np.array(["2020-01-01"], "M8[D]"),
    "structured": np.array([(1, 2.0)], [("a", "i4"), ("b", ">f8")]),
    "objects": np.array([1, None, "x"], object),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "strided": np.arange(10)[::2],
    "reversed": np.arange(10)[::-1],
    "broadcast": np.broadcast_to(np.arange(3), (2, 3)),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "many dimensions": np.zeros((1,) * 31 + (2,)),
    "bulk": np.arange(300_000, dtype=np.float64),
}


class Unit(np.ndarray):
    pass


class Box:
    """A user's object."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first = first
        self.second = second


class Locked:
    def __init__(self):
        self.fine = 1
        self.lock = threading.Lock()


class Refusing:
    def __reduce__(self):
        raise ValueError("I stay here")


def send(value):
    return rpc.rpc_sync("b", same, (value,))


# -- arrays and tensors


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(workers, name):
    array = ARRAYS[name]
    received = send(array)
    assert type(received) is np.ndarray
    assert (received.dtype, received.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(received, array)
    assert received.flags.writeable
    assert not np.shares_memory(received, array)


@pytest.mark.parametrize("name", [name for name in ARRAYS if ARRAYS[name].dtype.kind in "bif"])
def test_tensors(workers, name):
    tensor = tg.tensor(ARRAYS[name])
    received = send(tensor)
    assert type(received) is tg.Tensor
    assert (received.dtype, received.shape) == (tensor.dtype, tensor.shape)
    np.testing.assert_array_equal(received.numpy(), tensor.numpy())
    assert received.numpy().flags.writeable


def test_a_tensor_keeps_whether_it_requires_grad(workers):
    assert send(tg.ones(2, requires_grad=True)).requires_grad
    assert not send(tg.ones(2)).requires_grad


def test_a_tensor_with_a_history_arrives_as_a_leaf(workers):
    received = send(tg.ones(2, requires_grad=True) * 2)
    assert received.requires_grad
    assert received.is_leaf


def test_subclasses_of_arrays(workers):
    masked = send(np.ma.array([1, 2, 3], mask=[0, 1, 0]))
    assert masked.tolist() == [1, None, 3]
    assert type(send(np.arange(3).view(Unit))) is Unit


def test_numpy_scalars_and_types(workers):
    for value in (np.float32(1.5), np.int64(3), np.bool_(True), np.dtype(">i4"), np.float64, np.newaxis):
        received = send(value)
        assert received == value
        assert type(received) is type(value)


def test_every_element_is_received(workers):
    """A large message travels in chunks: whatever its size, nothing is lost or moved at their borders."""
    for size in (GRPC_CHUNK_BYTES // 8 - 100, GRPC_CHUNK_BYTES // 8, GRPC_CHUNK_BYTES // 4 + 1):
        array = np.random.default_rng(size).random(size)
        np.testing.assert_array_equal(send([array, array[:3].copy()])[0], array)


def test_values_nested_in_objects(workers):
    with tg.RRef("value") as own:
        box = Box(list=[tg.ones(2), {"key": np.arange(3)}], reference=own, inner=Slotted(tg.zeros(1), (own, None)))
        received = send(box)
        assert received.list[0].tolist() == [1, 1]
        assert received.list[1]["key"].tolist() == [0, 1, 2]
        assert received.inner.first.tolist() == [0]
        assert received.reference.local_value() == "value"
        assert received.inner.second[0] is received.reference


def test_what_was_one_object_stays_one_object(workers):
    tensor, array, box = tg.ones(3), np.ones(3), Box(x=1)
    received = send([tensor, array, box, tensor, array, box])
    for first, second in zip(received[:3], received[3:]):
        assert first is second
    received[0].numpy()[0] = 5
    assert received[3].tolist() == [5, 1, 1]


def test_an_object_that_contains_itself(workers):
    box = Box()
    box.me = box
    received = send(box)
    assert received.me is received


def test_what_was_two_objects_stays_two(workers):
    first, second = send([np.ones(3), np.ones(3)])
    first[0] = 7
    assert second[0] == 1


class Keeper:
    held = []  # noqa: RUF012


def hold(value):
    Keeper.held.append(value)


def held():
    return Keeper.held.pop()


@pytest.mark.parametrize("size", [3, 300_000])
def test_the_receiver_owns_what_it_gets_also_from_itself(workers, size):
    for worker in ("a", "b"):
        array, tensor = np.zeros(size), tg.zeros(size)
        rpc.rpc_sync(worker, hold, ([array, tensor],))
        array[:] = 1
        tensor.add_(1)
        kept = held()
        assert kept[0].sum() == 0
        assert kept[1].sum().item() == 0
        kept[0][:] = 5  # and writable


@pytest.mark.parametrize("size", [3, 300_000])
def test_arguments_are_captured_before_the_call_returns(workers, size):
    array, values, tensor = np.zeros(size), [1], tg.zeros(size)
    futures = []
    for _ in range(20):
        futures.append(rpc.rpc_async("b", same, (array,), kwargs=None))
        futures.append(rpc.rpc_async("b", same, ([values, tensor],)))
        array += 1
        values[0] += 1
        tensor.add_(1)
    for number, (first, second) in enumerate(zip(futures[::2], futures[1::2])):
        assert first.wait()[0] == first.wait()[-1] == number
        assert second.wait()[0] == [1 + number]
        assert second.wait()[1].tolist()[-1] == number


class Source:
    array = np.zeros(300_000)


@rpc.functions.async_execution
def captured_by_set_result():
    future = tg.futures.Future()
    future.set_result(Source.array)
    return future


def test_a_result_is_captured_before_set_result_returns(workers):
    Source.array[:] = 1
    result = rpc.rpc_sync("b", captured_by_set_result)
    Source.array[:] = 2
    assert result[0] == result[-1] == 1


# -- what cannot travel


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((threading.Lock(),), r"argument 0 \(_thread.lock\)"),
        ((1, [2, {"k": threading.Lock()}]), r"argument 1\[1\]\['k'\] \(_thread.lock\)"),
        ((Locked(),), r"argument 0\.lock \(_thread.lock\).*cannot pickle '_thread.lock'"),
        ((Box(inner=Box(model=Locked())),), r"argument 0\.inner\.model\.lock"),
        ((Slotted(1, threading.Lock()),), r"argument 0\.second \(_thread.lock\)"),
        ((Refusing(),), "argument 0 .*ValueError: I stay here"),
        (((i for i in ()),), "argument 0 .*generator"),
    ],
)
def test_an_argument_that_cannot_travel_is_named(workers, args, words):
    with pytest.raises(SerializationError, match=words):
        rpc.rpc_async("b", same, args)
    assert rpc.debug_info()["pending_calls"] == 0


def test_a_keyword_argument_and_a_variable_of_a_closure_are_named(workers):
    lock = threading.Lock()
    with pytest.raises(SerializationError, match="argument value="):
        rpc.rpc_sync("b", same, kwargs={"value": lock})
    with pytest.raises(SerializationError, match=r"the function.*its variable 'lock'"):
        rpc.rpc_sync("b", lambda: lock)


def make_lock():
    return Box(lock=threading.Lock())


def test_a_result_that_cannot_travel_is_named(workers):
    with pytest.raises(SerializationError, match=r"the result\.lock \(_thread.lock\)"):
        rpc.rpc_sync("b", make_lock)


def test_a_reference_beside_what_cannot_travel_is_not_forked(workers, until):
    with tg.RRef(1) as own:
        with pytest.raises(SerializationError):
            rpc.rpc_sync("b", same, ([own, threading.Lock()],))
        assert rpc.debug_info()["references"]["pending_children"] == 0
        assert rpc.debug_info()["references"]["open_transfers"] == 0
