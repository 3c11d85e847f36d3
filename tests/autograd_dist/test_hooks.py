"""Hooks run in backwards over several workers as in local ones: once a pass, where they are, with whole gradients."""

import pytest
import telegrad as tg
from helpers.remote import weights
from telegrad import autograd_dist, rpc
from telegrad.base.errors import AutogradError

pytestmark = pytest.mark.usefixtures("contexts_end")
seen = []


@pytest.fixture(autouse=True)
def nothing_seen():
    seen.clear()


def watched(x, where):
    """Register hooks on a tensor that arrived, on one in between, and on the result, of a worker."""
    y = x * 2.0
    for name, tensor in (("argument", x), ("between", y)):
        tensor.register_hook(lambda gradient, name=name: seen.append((where, name, gradient.tolist())))
    return y * y


def test_hooks_of_tensors_run_on_the_worker_where_they_are(workers):
    x = tg.ones(2, requires_grad=True)
    x.register_hook(lambda gradient: seen.append(("a", "leaf", gradient.tolist())))
    with autograd_dist.context() as context:
        there = rpc.rpc_sync("b", watched, (x, "b"))
        there.register_hook(lambda gradient: seen.append(("a", "result", gradient.tolist())))
        autograd_dist.backward(context, [(there + there).sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [16.0, 16.0]
    assert seen == [
        ("a", "result", [2.0, 2.0]),
        ("b", "between", [8.0, 8.0]),
        ("b", "argument", [16.0, 16.0]),
        ("a", "leaf", [16.0, 16.0]),
    ]


def doubling(x):
    x.register_hook(lambda gradient: gradient * 2.0)
    return x * 1.0


def test_hooks_change_gradients(workers):
    x = weights(1, 2)
    x.register_hook(lambda gradient: gradient + 1.0)
    with autograd_dist.context() as context:
        there = rpc.rpc_sync("b", doubling, (x,))
        there.register_hook(lambda gradient: gradient * 5.0)
        autograd_dist.backward(context, [there.sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [11.0, 11.0]


def test_hooks_of_nodes_run(workers):
    x = weights(1, 2)
    with autograd_dist.context() as context:
        there = rpc.rpc_sync("b", tg.mul, (x, 3.0))
        there.grad_fn.register_prehook(lambda gradients: seen.append([each.tolist() for each in gradients]))
        autograd_dist.backward(context, [there.sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [3.0, 3.0]
    assert seen == [[[1.0, 1.0]]]


def test_a_leaf_s_gradient_is_in_the_context_when_its_last_hook_runs(workers):
    x = weights(1, 2)
    with autograd_dist.context() as context:
        x.register_post_accumulate_grad_hook(
            lambda leaf: seen.append(autograd_dist.get_gradients(context)[leaf].tolist())
        )
        autograd_dist.backward(context, [rpc.rpc_sync("b", tg.mul, (x, 3.0)).sum()])
    assert seen == [[3.0, 3.0]] and x.grad is None


def fails_in_a_hook(x):
    def refuse(gradient):
        raise ArithmeticError("refused")

    x.register_hook(refuse)
    return x * 1.0


def test_an_error_in_a_hook_arrives_at_the_root(workers):
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", fails_in_a_hook, (weights(1, 2),)).sum()
        with pytest.raises(ArithmeticError, match="refused"):
            autograd_dist.backward(context, [loss])


def calls_in_a_hook(x):
    x.register_hook(lambda gradient: rpc.rpc_sync("c", tg.mul, (gradient, 10.0)))
    return x * 1.0


def test_a_hook_may_call_workers(workers):
    x = weights(1, 2)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [rpc.rpc_sync("b", calls_in_a_hook, (x,)).sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [10.0, 10.0]


def test_a_hook_that_returns_another_shape_is_named(workers):
    with autograd_dist.context() as context:
        there = rpc.rpc_sync("b", tg.mul, (weights(1, 2), 3.0))
        there.register_hook(lambda gradient: gradient.sum())
        with pytest.raises(AutogradError, match=r"a hook returned a gradient of shape \(\) for one of \(2,\)"):
            autograd_dist.backward(context, [there.sum()])
