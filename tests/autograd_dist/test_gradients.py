"""Distributed gradients are the local ones: the same program, run in one worker and across several."""

import threading

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import same, there_and_back, weights
from telegrad import autograd_dist, rpc
from telegrad.base.errors import AutogradError, RpcError, WorkerLostError
from telegrad.core.futures import wait_all

TOLERANCE = 1e-12
pytestmark = pytest.mark.usefixtures("contexts_end")


def sin_matmul(x, w):
    return tg.sin(x @ w)


class Layer:
    """A parameter that lives on one worker."""

    def __init__(self, seed, rows, columns):
        self.weight = weights(seed, rows, columns)

    def forward(self, x):
        return tg.tanh(x @ self.weight)

    def forward_of(self, reference):
        return self.forward(reference.to_here())

    def gradient(self, context):
        return autograd_dist.get_gradients(context)[self.weight].numpy()

    def parameter(self):
        return self.weight

    def parameter_rref(self):
        return tg.RRef(self.weight)

    def value(self):
        return self.weight.detach().numpy().copy()


def assert_same_gradients(build, *leaves):
    """``build(call, *leaves)`` gives a scalar; ``call(worker, function, *args)`` runs the function somewhere, or here."""
    with autograd_dist.context() as context:
        loss = build(lambda worker, function, *args: rpc.rpc_sync(worker, function, args), *leaves)
        autograd_dist.backward(context, [loss])
        found = autograd_dist.get_gradients(context)
        found = [found[leaf].numpy() for leaf in leaves]
    assert all(leaf.grad is None for leaf in leaves)
    local = build(lambda worker, function, *args: function(*args), *leaves)
    local.backward()
    assert local.item() == pytest.approx(loss.item(), abs=TOLERANCE)
    for leaf, gradient in zip(leaves, found):
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=0, atol=TOLERANCE)
        leaf.grad = None


# -- the gradients of one's own leaves


@pytest.mark.parametrize("worker", ["a", "b"])
def test_one_call(workers, worker):
    assert_same_gradients(lambda call, x, w: call(worker, sin_matmul, x, w).sum(), weights(1, 3, 4), weights(2, 4, 2))


@pytest.mark.parametrize(
    ("build", "leaves"),
    [
        (lambda call, x: call("b", there_and_back, x, []).sum(), 1),
        (lambda call, x, y: call("b", tg.mul, x, y).sum(), 2),
        (lambda call, x: call("b", tg.mul, x, x).sum(), 1),
        (lambda call, x: (call("b", tg.mul, x, x) * call("b", tg.mul, x, 2.0)).sum(), 1),
        (lambda call, x: call("b", tg.mul, call("c", tg.mul, x, 3.0), x).sum(), 1),
        (lambda call, x: sum(call("bca"[i % 3], tg.mul, x, float(i)).sum() for i in range(7)), 1),
        (lambda call, x, y: call("b", same, [x, {"y": y}])[1]["y"].sum() + (x * y).sum(), 2),
        (lambda call, x, y: call("b", same, x).sum() + call("c", same, y).sum(), 2),
        (lambda call, x: call("b", same, x[1:3].reshape(2, -1)).sum(), 1),
        (lambda call, x: call("c", same, tg.sin(x)).mean() * call("b", tg.mul, x, x).sum(), 1),
    ],
)
def test_graphs(workers, build, leaves):
    assert_same_gradients(build, *[weights(number, 4, 3) for number in range(leaves)])


@pytest.mark.parametrize("route", ["b", "a", "bc", "bab", "bcbcb", "abcabc"])
def test_a_graph_that_goes_from_worker_to_worker_and_back(workers, route):
    x = weights(7, 5)
    with autograd_dist.context() as context:
        loss = there_and_back(x, list(route)).sum()
        autograd_dist.backward(context, [loss])
        found = autograd_dist.get_gradients(context)[x].numpy()

    def local(y, depth):
        z = tg.tanh(y) * (1.0 + depth)
        return z if not depth else local(z, depth - 1) + y

    local(x, len(route)).sum().backward()
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=0, atol=TOLERANCE)


def test_fan_out(workers):
    x = weights(3, 4)
    with autograd_dist.context() as context:
        futures = [rpc.rpc_async("bc"[number % 2], tg.mul, (x, float(number))) for number in range(40)]
        loss = sum(future.sum() for future in wait_all(futures))
        autograd_dist.backward(context, [loss])
        gradient = autograd_dist.get_gradients(context)[x].numpy()
    np.testing.assert_allclose(gradient, np.full(4, sum(range(40))), rtol=0, atol=TOLERANCE)


def test_through_remote_and_to_here(workers):
    x = weights(3, 4)
    with autograd_dist.context() as context:
        with rpc.remote("b", tg.mul, (x, 3.0)) as reference:
            loss = (reference.to_here() * rpc.rpc_sync("c", squared, (reference,))).sum()
            autograd_dist.backward(context, [loss])
        gradient = autograd_dist.get_gradients(context)[x].numpy()
    np.testing.assert_allclose(gradient, 3 * 27 * x.detach().numpy() ** 2, rtol=0, atol=1e-10)


def squared(reference):
    value = reference.to_here()
    return value * value


def test_in_callbacks_and_coroutines(workers):
    x = weights(3, 4)
    with autograd_dist.context() as context:
        future = rpc.rpc_async("b", tg.mul, (x, 2.0)).then(lambda done: rpc.rpc_sync("c", tg.mul, (done.value(), 5.0)))
        loss = future.wait().sum() + rpc.rpc_sync("b", slowly, (x,)).sum() + rpc.rpc_sync("b", later, (x,)).sum()
        autograd_dist.backward(context, [loss])
        assert autograd_dist.get_gradients(context)[x].tolist() == [10 + 3 + 4] * 4


async def slowly(x):
    return await rpc.rpc_async("c", tg.mul, (x, 3.0))


@rpc.functions.async_execution
def later(x):
    return rpc.rpc_async("c", tg.mul, (x, 2.0)).then(lambda done: done.value() * 2)


# -- parameters elsewhere


def test_parameters_on_several_workers(workers):
    x = tg.tensor(np.random.default_rng(0).standard_normal((6, 4)))
    with rpc.remote("b", Layer, (1, 4, 5)) as first, rpc.remote("c", Layer, (2, 5, 3)) as second:
        layers = [Layer(1, 4, 5), Layer(2, 5, 3)]
        with autograd_dist.context() as context:
            hidden = first.rpc_sync().forward(x)
            loss = (second.rpc_sync().forward(hidden) ** 2).sum()
            autograd_dist.backward(context, [loss])
            found = [layer.rpc_sync().gradient(context) for layer in (first, second)]
        local = (layers[1].forward(layers[0].forward(x)) ** 2).sum()
        local.backward()
        for layer, gradient in zip(layers, found):
            np.testing.assert_allclose(gradient, layer.weight.grad.numpy(), rtol=0, atol=TOLERANCE)


def test_a_parameter_shared_by_trainers(workers):
    """Each context has its own gradients, however many run at once."""
    with rpc.remote("c", Layer, (1, 4, 2)) as layer:
        results, a, errors = {}, workers[0], []

        def train(seed):
            x = tg.tensor(np.random.default_rng(seed).standard_normal((3, 4)))
            try:
                with a.use(), autograd_dist.context() as context:
                    loss = layer.rpc_sync().forward(x).sum()
                    autograd_dist.backward(context, [loss])
                    results[seed] = layer.rpc_sync().gradient(context)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=train, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not errors
        for seed, gradient in results.items():
            local = Layer(1, 4, 2)
            local.forward(tg.tensor(np.random.default_rng(seed).standard_normal((3, 4)))).sum().backward()
            np.testing.assert_allclose(gradient, local.weight.grad.numpy(), rtol=0, atol=TOLERANCE)
        assert len(results) == 8


def test_several_backwards_add_up_in_the_context(workers):
    x = weights(3, 4)
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", tg.mul, (x, 3.0)).sum()
        for _ in range(2):
            autograd_dist.backward(context, [loss], retain_graph=True)
        autograd_dist.backward(context, [loss])
        assert autograd_dist.get_gradients(context)[x].tolist() == [9] * 4
        with pytest.raises(AutogradError):
            autograd_dist.backward(context, [loss])


def test_several_roots(workers):
    x, y = weights(3, 4), weights(4, 4)
    with autograd_dist.context() as context:
        first, second = rpc.rpc_sync("b", tg.mul, (x, 3.0)).sum(), rpc.rpc_sync("c", tg.mul, (x, y)).sum()
        autograd_dist.backward(context, [first, second, y.sum(), first])
        gradients = autograd_dist.get_gradients(context)
    np.testing.assert_allclose(gradients[x].numpy(), 6 + y.detach().numpy(), rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(gradients[y].numpy(), 1 + x.detach().numpy(), rtol=0, atol=TOLERANCE)


def test_a_backward_that_begins_elsewhere(workers):
    x = weights(3, 4)
    with autograd_dist.context() as context, rpc.remote("b", total, (x,)) as loss:
        loss.backward(context)
        np.testing.assert_allclose(
            autograd_dist.get_gradients(context)[x].numpy(), 2 * x.detach().numpy(), atol=TOLERANCE
        )


def total(x):
    return (x * x).sum()


def test_a_reference_s_backward_without_a_context(workers):
    x = weights(1, 3)
    loss = tg.RRef((x * 2).sum())
    loss.backward()
    assert x.grad.tolist() == [2, 2, 2]
    with tg.RRef("text") as text, pytest.raises(RpcError, match=r"needs a reference to a tensor.*refers to a str"):
        text.backward()


def test_a_purely_local_graph(workers):
    x = weights(1, 3)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [(x * 2).sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [2, 2, 2]
    assert x.grad is None


def test_under_no_grad_nothing_is_recorded(workers):
    x = weights(1, 3)
    with autograd_dist.context() as context:
        with tg.no_grad():
            constant = rpc.rpc_sync("b", tg.mul, (x, 2.0))
        loss = (rpc.rpc_sync("b", tg.mul, (x, 3.0)) * constant.detach()).sum()
        autograd_dist.backward(context, [loss])
        np.testing.assert_allclose(autograd_dist.get_gradients(context)[x].numpy(), 6 * x.detach().numpy())


# -- what goes wrong


@pytest.mark.parametrize("context", [12345, -1, None, "x"])
def test_no_such_context(workers, context):
    loss = weights(1, 2).sum()
    for use in (lambda: autograd_dist.backward(context, [loss]), lambda: autograd_dist.get_gradients(context)):
        with pytest.raises(RpcError, match="there is no autograd context"):
            use()


@pytest.mark.parametrize(
    ("roots", "error", "words"),
    [
        (lambda: [tg.ones(2, requires_grad=True) * 1], AutogradError, r"root 0 must be a scalar; its shape is \(2,\)"),
        (lambda: [tg.ones(2).sum()], AutogradError, "root 0 does not require grad"),
        (lambda: [tg.ones(1, requires_grad=True).sum(), 3], TypeError, "root 1 must be a tensor; you gave int"),
        (list, AutogradError, r"write backward\(context_id, \[loss\]\)"),
        (lambda: tg.ones(1, requires_grad=True).sum(), AutogradError, r"write backward\(context_id, \[loss\]\)"),
    ],
)
def test_roots_that_cannot_be(workers, roots, error, words):
    with autograd_dist.context() as context, pytest.raises(error, match=words):
        autograd_dist.backward(context, roots())


def test_a_remote_result_that_does_not_contribute_is_named_in_fast_mode(workers):
    x = weights(1, 2)
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", tg.mul, (x, 2.0)).sum()
        rpc.rpc_sync("c", tg.mul, (x, 3.0))
        with pytest.raises(AutogradError, match=r"no gradient came for 1 tensor .*'c'.*'a'"):
            autograd_dist.backward(context, [loss], mode="fast")


def test_a_local_backward_cannot_leave_its_worker(workers):
    x = weights(1, 2)
    with autograd_dist.context():
        loss = rpc.rpc_sync("b", tg.mul, (x, 2.0)).sum()
        with pytest.raises(AutogradError, match=r"on another worker.*autograd_dist.backward"):
            loss.backward()


def test_contexts_do_not_mix(workers):
    x = weights(1, 2)
    with autograd_dist.context():
        loss = rpc.rpc_sync("b", tg.mul, (x, 2.0)).sum()
    with autograd_dist.context() as second, pytest.raises(AutogradError, match="the graph mixes contexts"):
        autograd_dist.backward(second, [loss])


class Failing(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        raise KeyError("in the backward")


def failing(x):
    return Failing.apply(x)


@pytest.mark.parametrize("route", ["b", "bc", "a", "bcb"])
def test_an_exception_in_a_node_elsewhere_arrives_at_the_root(workers, route):
    x = weights(1, 2)
    with autograd_dist.context() as context:
        loss = through(x, list(route)).sum()
        with pytest.raises(KeyError, match="in the backward"):
            autograd_dist.backward(context, [loss])


def through(x, route):
    if len(route) == 1:
        return rpc.rpc_sync(route[0], failing, (x,))
    return rpc.rpc_sync(route[0], through, (x * 2.0, route[1:]))


def test_a_worker_lost_before_the_backward(cluster, until):
    with cluster("x", "y", "z") as agents, agents[0].use():
        x = weights(1, 2)
        with autograd_dist.context() as context:
            loss = rpc.rpc_sync("y", through_z, (x,)).sum()
            agents[2].close("it leaves early")
            until(lambda: agents[1].peers.find("z").gone)
            with pytest.raises(WorkerLostError, match="'z'"):
                autograd_dist.backward(context, [loss])
        for agent in agents[:2]:
            until(lambda agent=agent: agent.debug_info()["contexts"] == 0)


def test_a_worker_lost_after_the_backward(cluster, until):
    """Lose what was there: the gradients of the others stay, and a step says who is gone."""
    with cluster("x", "y", "z") as agents, agents[0].use():
        with rpc.remote("y", Layer, (1, 2, 2)) as first, rpc.remote("z", Layer, (2, 2, 2)) as second:
            x = weights(1, 2, 2)
            parameters = [layer.rpc_sync().parameter_rref() for layer in (first, second)]
            optimizer = tg.DistributedOptimizer(tg.optim.SGD, parameters, lr=1.0)
            with autograd_dist.context() as context:
                loss = second.rpc_sync().forward(first.rpc_sync().forward(x)).sum()
                autograd_dist.backward(context, [loss], retain_graph=True)
                agents[2].close("it leaves early")
                until(lambda: all(agent.peers.find("z").gone for agent in agents[:2]))
                assert x in autograd_dist.get_gradients(context)
                before = first.rpc_sync().value()
                with pytest.raises(WorkerLostError, match="'z'"):
                    optimizer.step(context)
                assert not np.array_equal(first.rpc_sync().value(), before), "the others step"
                with pytest.raises(WorkerLostError, match="'z'"):
                    autograd_dist.backward(context, [loss])
        for agent in agents[:2]:
            until(lambda agent=agent: agent.debug_info()["contexts"] == 0)


def test_a_worker_that_takes_no_part_is_lost(cluster, until):
    with cluster("x", "y", "z") as agents, agents[0].use():
        x = weights(1, 2)
        with autograd_dist.context() as context:
            rpc.rpc_sync("z", tg.mul, (x, 5.0))
            loss = rpc.rpc_sync("y", tg.mul, (x, 2.0)).sum()
            agents[2].close("it leaves early")
            until(lambda: all(agent.peers.find("z").gone for agent in agents[:2]))
            autograd_dist.backward(context, [loss])
            assert autograd_dist.get_gradients(context)[x].tolist() == [2.0, 2.0]


def through_z(x):
    return rpc.rpc_sync("z", tg.mul, (x, 2.0))


def test_the_creator_of_a_context_is_lost(cluster, until):
    with cluster("x", "y", "z") as agents:
        with agents[0].use():
            entered = autograd_dist.context()
            entered.__enter__()
            rpc.rpc_sync("y", through_z, (weights(1, 2),))
            agents[0].close("it leaves early")
            entered.__exit__(None, None, None)
        for agent in agents[1:]:
            until(lambda agent=agent: agent.debug_info()["contexts"] == 0)
