"""Reductions of calls on meshes: sums, means and concatenations of results, and their errors and gradients."""

import copy

import numpy as np
import pytest
import telegrad as tg
from helpers.gates import GATE, hold
from helpers.mesh_workers import NAMES, rank, where
from helpers.threads import until
from telegrad import rpc
from telegrad.base.errors import (
    ArgumentKindError,
    ArgumentValueError,
    RpcCancelledError,
    RpcTimeoutError,
    SerializationError,
    WorkerLostError,
)
from telegrad.rpc.calls.caller import Caller
from telegrad.rpc.extend import MeshCalls
from telegrad.rpc.wire.messages import Method


def rank_of(scale, make):
    return make(scale * rank())


def rank_held(names):
    return hold() if where() in names else rank()


def at_rank(rank, value):
    if rpc.get_worker_info().id == rank:
        raise KeyError(rank)
    return value


def test_sums_and_means_come_back_as_one_value(mesh_workers):
    mesh, total = rpc.mesh(), sum(range(23))
    assert mesh.call(rank, reduce="sum") == total
    assert mesh.call(rank, reduce="mean") == total / 23
    assert mesh.call(rank_of, (2.0, np.float64), reduce="sum") == 2 * total
    assert rpc.mesh(["w5"]).call(rank, reduce="sum") == 5
    pair = mesh.call(lambda: {"rank": tg.full((2,), float(rank())), "one": (1, [np.ones(3)])}, reduce="sum")
    assert pair["rank"].tolist() == [total, total] and pair["one"][0] == 23
    np.testing.assert_array_equal(pair["one"][1][0], np.full(3, 23.0))
    assert mesh.call_async(rank, reduce="sum").wait() == total


def test_concatenation_is_in_the_order_of_the_mesh(mesh_workers):
    mesh = rpc.mesh(NAMES[::-1])
    assert mesh.call(lambda: [where()], reduce="cat") == NAMES[::-1]
    assert mesh.call(lambda: tg.full((1,), rank()), reduce="cat").tolist() == list(range(23))[::-1]
    np.testing.assert_array_equal(mesh.call(lambda: np.full(1, rank()), reduce="cat"), np.arange(23)[::-1])


def test_the_bits_of_a_sum_repeat(mesh_workers):
    values = np.random.default_rng(1).standard_normal((23, 100)).astype(np.float32)
    sums = [rpc.mesh().call(np.copy, (rpc.scattered(values),), reduce="sum").tobytes() for _ in range(10)]
    assert len(set(sums)) == 1


@pytest.mark.parametrize("reduce", ["sum", "mean", "cat"])
def test_a_failed_worker_fails_a_reduction_by_name(mesh_workers, reduce):
    for failing in (0, 1, 12, 22):
        with pytest.raises(KeyError, match=str(failing)):
            rpc.mesh().call(at_rank, (failing, [1.0] if reduce == "cat" else 1.0), reduce=reduce)
    mesh_workers[13].close("it is lost")
    with pytest.raises(WorkerLostError, match="'w13'"):
        rpc.mesh(NAMES).call(rank, reduce=reduce)


def test_requests_that_an_early_error_makes_needless_are_not_sent(mesh_workers, monkeypatch):
    send, sent, calls = Caller._send, [], mesh_workers[1].part(MeshCalls)

    def send_slowly(caller, call, *rest, **options):
        send(caller, call, *rest, **options)
        if caller is mesh_workers[1].caller and call.method == Method.MESH:
            sent.append(call.to)
            (made,) = calls._served[0].values()
            until(lambda: not made.relay.missing and not caller.table.calls)

    rpc.mesh(NAMES[:6]).call(where)
    mesh_workers[0].part(MeshCalls)._release_made()
    until(lambda: not any(calls._served.values()))
    monkeypatch.setattr(Caller, "_send", send_slowly)
    with pytest.raises(KeyError, match="2"):
        rpc.mesh(NAMES[:6]).call(at_rank, (2, 1.0), reduce="sum")
    assert sent == [2] and not mesh_workers[1].caller.table.calls


def test_wrong_reductions_are_told(mesh_workers):
    with pytest.raises(ArgumentValueError, match="'max'"):
        rpc.mesh().call(rank, reduce="max")
    with pytest.raises(RuntimeError, match="type int cannot be concatenated"):
        rpc.mesh().call(abs, (1,), reduce="cat")  # numbers are not concatenated
    with pytest.raises(RuntimeError, match="cannot be added up"):
        rpc.mesh().call(where, reduce="sum")
    mesh = rpc.mesh(NAMES[:2])
    with pytest.raises(RuntimeError, match="one is dict with the keys 'a', another dict with the keys 'a', 'b'"):
        mesh.call(dict, (rpc.scattered([{"a": 1}, {"a": 1, "b": 2}]),), reduce="sum")
    with pytest.raises(RuntimeError, match="results of type list and tuple cannot be concatenated"):
        mesh.call(copy.copy, (rpc.scattered([[1], (1,)]),), reduce="cat")
    with pytest.raises(RuntimeError, match=r"cannot be concatenated: .*; return the same shapes, but for the first"):
        mesh.call(np.ones, (rpc.scattered([(1, 2), (1, 3)]),), reduce="cat")
    with pytest.raises(ArgumentKindError, match=r"rpc.scattered\(\) takes a list of values, .* you gave 3"):
        rpc.scattered(3)
    with pytest.raises(SerializationError, match=r"and not inside of others$"):
        mesh.call(abs, ([rpc.scattered([1, 2])],))
    with pytest.raises(RuntimeError, match=r"cannot be added up: .*; return the same shapes on all workers"):
        rpc.mesh(NAMES[:2]).call(np.ones, (rpc.scattered([2, 3]),), reduce="sum")


def test_a_reduction_is_given_up(mesh_workers, closed_gate):
    future = rpc.mesh(NAMES).call_async(rank_held, (["w1", "w12"],), reduce="sum")
    assert future.cancel()
    with pytest.raises(RpcCancelledError):
        future.wait(timeout=20)
    GATE.set()
    with pytest.raises(
        RpcTimeoutError, match=r"on worker 'w1', or on one below it \('w2', .*\), got no answer in time"
    ):
        GATE.clear()
        rpc.mesh(NAMES[:6]).call(rank_held, (["w3"],), reduce="sum", timeout=0.5)
    GATE.set()
    until(lambda: not any(worker.server.serving for worker in mesh_workers))


@pytest.mark.parametrize(("reduce", "scale"), [("sum", 1.0), ("mean", 1 / 23), ("cat", 1.0)])
def test_reductions_are_differentiable(mesh_workers, reduce, scale):
    weight = tg.ones(3, requires_grad=True)
    with tg.autograd_dist.context() as context:
        loss = rpc.mesh().call(tg.mul, (weight, rpc.scattered([float(number) for number in range(23)])), reduce=reduce)
        tg.autograd_dist.backward(context, [loss.sum()])
        gradient = tg.autograd_dist.get_gradients(context)[weight]
        np.testing.assert_allclose(gradient.numpy(), np.full(3, 253.0 * scale), rtol=1e-6)
