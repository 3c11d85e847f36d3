"""Bad input of calls on meshes, told at the caller, and what cannot be sent."""

import threading

import pytest
import telegrad as tg
from helpers.gates import GATE, hold
from helpers.mesh_workers import NAMES, where
from telegrad import rpc
from telegrad.base.errors import (
    ArgumentIndexError,
    ArgumentKindError,
    ArgumentValueError,
    SerializationError,
    UnknownWorkerError,
)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: rpc.mesh([]), ArgumentValueError, "at least one"),
        (lambda: rpc.mesh(["w1", "w2", 1]), ArgumentValueError, "'w1' is in the mesh twice"),
        (lambda: rpc.mesh("w1"), ArgumentKindError, r"\['w1'\]"),
        (lambda: rpc.mesh(["nobody"]), UnknownWorkerError, "nobody"),
        (lambda: rpc.mesh(shape={"a": 5}), ArgumentValueError, "5 places, and the mesh 23"),
        (lambda: rpc.mesh(shape={"a": 23.0}), ArgumentKindError, "23.0"),
        (lambda: rpc.mesh(shape=[23]), ArgumentKindError, "names the dimensions"),
        (lambda: rpc.mesh().at(host=0), ArgumentValueError, "no dimension 'host'"),
        (lambda: rpc.mesh().at(worker=23), ArgumentIndexError, "23 places"),
        (lambda: rpc.mesh().at(worker=slice(3, 3)), ArgumentValueError, "no worker"),
        (lambda: rpc.mesh().at(worker="w1"), ArgumentKindError, "'w1'"),
        (lambda: rpc.mesh().call(3), TypeError, "something to call"),
        (lambda: rpc.mesh().call(abs, 3), TypeError, "args must be a tuple"),
        (lambda: rpc.mesh().call(abs, (rpc.scattered([1, 2]),)), ArgumentValueError, "2 values, and the mesh 23"),
        (lambda: rpc.mesh().call(abs, (rpc.sharded(tg.ones(22)),)), ArgumentValueError, "length 22"),
        (lambda: rpc.sharded(3), ArgumentKindError, "one dimension"),
        (lambda: rpc.sharded(tg.ones(3), dim=1), ArgumentValueError, "dim=1"),
        (lambda: rpc.mesh().call(abs, (1,), timeout=-2), ValueError, "timeout"),
        (
            lambda: rpc.mesh().call(len, ([rpc.scattered(range(23))],)),
            SerializationError,
            "arguments of calls on a mesh",
        ),
        (
            lambda: rpc.mesh().call(abs, (1,))[1.5],
            ArgumentKindError,
            "named by its name, place or coordinates; you gave 1.5",
        ),
        (lambda: rpc.mesh().call_async(hold).wait(any=24), ArgumentValueError, "1 to 23"),
        (
            lambda: rpc.mesh().call(abs, (1,))[1, 0],
            ArgumentValueError,
            r"are 1 in this mesh \(worker\); you gave \(1, 0\)",
        ),
        (
            lambda: rpc.mesh(["w1", "w2"]).call(id, (rpc.scattered([1, threading.Lock()]),)),
            SerializationError,
            "the part of worker 'w2' of a scattered argument",
        ),
    ],
)
def test_bad_input_is_told_at_the_caller(mesh_workers, make, error, text):
    GATE.set()
    with pytest.raises(error, match=text):
        make()


def test_what_cannot_be_pickled_is_told_once_and_nothing_is_sent(mesh_workers):
    before = mesh_workers[0].caller.table.sent
    with pytest.raises(SerializationError, match="argument 0"):
        rpc.mesh().call(where, (threading.Lock(),))
    assert mesh_workers[0].caller.table.sent == before


def test_a_result_that_cannot_be_sent_is_an_error_of_its_worker(mesh_workers):
    values = rpc.mesh(NAMES[:3]).call(threading.Lock)
    assert {type(error) for error in values} == {SerializationError}
