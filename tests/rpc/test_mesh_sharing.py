"""Large arrays of mesh calls: in one segment for a machine, each worker's own there, and in messages where that fails."""

import os

import numpy as np
import pytest
import telegrad as tg
from helpers.threads import until
from telegrad import rpc
from telegrad.core.extend import Tensor
from telegrad.core.shared_memory import Address
from telegrad.rpc.extend import FrameKind
from telegrad.rpc.meshes import shared_call
from telegrad.rpc.meshes.shared_call import SHARED_BYTES, SharedCall, open_shared, share, whole_call
from telegrad.rpc.wire.bundle import Bundle, Content
from telegrad.testing import in_process_cluster

NAMES = [f"w{rank}" for rank in range(9)]
LARGE = SHARED_BYTES // 8


@pytest.fixture
def workers():
    with in_process_cluster(*NAMES) as agents, agents[0].use():
        yield agents


@pytest.fixture
def sent(monkeypatch):
    """The sizes of the bodies of requests."""
    sizes, put_into = [], Bundle.put_into

    def noted(bundle, message, limit):
        if message.kind == FrameKind.REQUEST:
            sizes.append(sum(content.size() for content in bundle.contents))
        put_into(bundle, message, limit)

    monkeypatch.setattr(Bundle, "put_into", noted)
    return sizes


@pytest.fixture
def segments(monkeypatch):
    """The sizes of the segments that are made."""
    made, write = [], shared_call.write_sealed
    monkeypatch.setattr(shared_call, "write_sealed", lambda size, pieces: made.append(size) or write(size, pieces))
    return made


def add(array, tensor, small):
    array += 1
    tensor.add_(1)
    return float(array.sum()), float(tensor.sum()), small


def given():
    return np.zeros(LARGE), tg.ones(LARGE, dtype=tg.float64), tg.arange(3)


def check(values):
    for first, second, small in values:
        assert (first, second) == (LARGE, 2 * LARGE)
        assert small.tolist() == [0, 1, 2]


def test_one_segment_reaches_all_and_each_writes_to_its_own(workers, sent, segments):
    arrays = given()
    check(rpc.mesh(NAMES[1:]).call(add, arrays).values())
    assert arrays[0].sum() == 0.0, "the caller's array was written to"
    assert segments == [16 * LARGE]
    assert max(sent) < 1000


@pytest.mark.parametrize("opens", [False, True])
def test_a_worker_that_cannot_map_it_gets_the_bytes(workers, sent, monkeypatch, opens):
    def refuse(address, flags):
        raise PermissionError(address)

    monkeypatch.setattr(shared_call, "MOST_MAPPED", 0)  # those that can have copies
    if not opens:
        monkeypatch.setattr(Address, "open", refuse)
    for _ in range(2):
        check(rpc.mesh(NAMES[1:]).call(add, given()).values())
    assert (max(sent) > 2 * SHARED_BYTES) is not opens


def test_a_lost_worker_does_not_take_the_arrays_with_it(workers):
    workers[1].close("it is lost")
    values = rpc.mesh(NAMES[1:]).call(add, given())
    assert values.errors().keys() == {"w1"}
    check([value for value in values if not isinstance(value, Exception)])


def test_no_descriptor_stays_open(workers):
    mesh = rpc.mesh(NAMES[1:])
    mesh.call(add, given()).values()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        mesh.call(add, given()).values()
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def content(*tensors):
    return Content(0, (b"",), list(tensors))


def test_arrays_come_out_as_they_were_put_in():
    tensors = [Tensor(np.arange(LARGE + shift).astype(kind)) for shift, kind in [(1, "f8"), (-LARGE, "f4"), (5, "i8")]]
    shared = share(content(*tensors))
    assert len(shared.rest.tensors) == 1
    opened = open_shared(shared.encode(), shared.rest)
    for found in (shared.content(), opened.content(), whole_call(shared.encode(), shared.rest)):
        for tensor, other in zip(tensors, found.tensors, strict=True):
            assert tensor._array.dtype == other._array.dtype
            np.testing.assert_array_equal(tensor._array, other._array)
    shared.close()
    with pytest.raises(OSError):
        open_shared(shared.encode(), shared.rest)


def test_arrays_that_messages_carry_better_are_not_shared():
    plain = np.zeros(LARGE)
    assert share(content(Tensor(plain))) is not None
    assert share(content(Tensor(plain[:10].copy()))) is None
    assert share(content(Tensor(plain, True))) is None, "its gradient goes back through messages"
    assert share(content(Tensor(plain), Tensor(plain[:10]))) is None, "they arrive sharing memory"
    assert share(content(Tensor(np.zeros((LARGE, 2)).T))) is None


def test_workers_between_encode_the_call_once(workers, monkeypatch):
    mesh, array = rpc.mesh(NAMES[1:]), np.ones(LARGE)
    mesh.call(np.sum, (array,)).values()  # makes connections
    encoded, encode = [], SharedCall.encode
    monkeypatch.setattr(SharedCall, "encode", lambda call: encoded.append(call) or encode(call))
    assert mesh.call(np.sum, (array,)).values() == [LARGE] * 8
    assert len(encoded) == 2, "the caller and the one worker that passes it on"
