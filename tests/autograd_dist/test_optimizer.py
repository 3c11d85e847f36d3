"""``DistributedOptimizer``: steps parameters where they live, once each, one after another."""

import threading
import weakref

import numpy as np
import pytest
import telegrad as tg
from helpers.numbered import numbered_cluster
from telegrad import autograd_dist, optim, rpc
from telegrad.autograd_dist.step_queue import StepQueue
from telegrad.base.errors import RpcError
from telegrad.optim import SGD, Adam
from telegrad.testing import in_process_cluster


class Layer:
    def __init__(self, seed, *shape):
        self.weight = tg.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)

    def forward(self, x):
        return tg.tanh(x @ self.weight)

    def parameter_rref(self):
        return tg.RRef(self.weight)

    def value(self):
        return self.weight.detach().numpy().copy()


X = np.random.default_rng(9).standard_normal((6, 4))


@pytest.fixture
def layers(workers):
    """One layer on each other worker."""
    with rpc.remote("b", Layer, (1, 4, 5)) as first, rpc.remote("c", Layer, (2, 5, 3)) as second:
        yield [first, second]


def parameters(layers):
    return [layer.rpc_sync().parameter_rref() for layer in layers]


def forward(layers):
    return (layers[1].rpc_sync().forward(layers[0].rpc_sync().forward(tg.tensor(X))) ** 2).sum()


@pytest.mark.parametrize(("kind", "options"), [(SGD, {"lr": 0.1, "momentum": 0.9}), (Adam, {"lr": 0.01})])
@pytest.mark.parametrize("hogwild", [False, True])
def test_it_steps_like_a_local_one(layers, kind, options, hogwild):
    optimizer = autograd_dist.DistributedOptimizer(kind, parameters(layers), hogwild=hogwild, **options)
    local = [Layer(1, 4, 5), Layer(2, 5, 3)]
    reference = kind([layer.weight for layer in local], **options)
    for _ in range(5):
        with autograd_dist.context() as context:
            autograd_dist.backward(context, [forward(layers)])
            optimizer.step(context)
        reference.zero_grad()
        (local[1].forward(local[0].forward(tg.tensor(X))) ** 2).sum().backward()
        reference.step()
    for layer, own in zip(layers, local):
        np.testing.assert_allclose(layer.rpc_sync().value(), own.value(), rtol=0, atol=1e-12)


def test_parameters_of_one_s_own(workers):
    weight = tg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = autograd_dist.DistributedOptimizer(SGD, [tg.RRef(weight)], lr=0.5)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [(weight * rpc.rpc_sync("b", tg.mul, (weight, 1.0))).sum()])
        optimizer.step(context)
    assert weight.tolist() == [0, 0]


def test_a_parameter_without_a_gradient_stays(layers):
    optimizer = autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=0.1)
    before = layers[1].rpc_sync().value()
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [layers[0].rpc_sync().forward(tg.tensor(X)).sum()])
        rpc.rpc_sync("c", abs, (-1,))
        optimizer.step(context)
    np.testing.assert_array_equal(layers[1].rpc_sync().value(), before)


def test_an_error_in_the_constructor_is_raised_by_ours(layers):
    with pytest.raises(TypeError, match="no_such_option"):
        autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=0.1, no_such_option=1)
    with pytest.raises(ValueError, match="lr"):
        autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=-1.0)


def test_misuse(workers):
    with pytest.raises(ValueError, match="params_rref is empty"):
        autograd_dist.DistributedOptimizer(SGD, [], lr=0.1)
    with pytest.raises(TypeError, match=r"params_rref\[0\] must be an RRef; you gave Tensor"):
        autograd_dist.DistributedOptimizer(SGD, [tg.ones(1, requires_grad=True)], lr=0.1)


def step(optimizer, context):
    optimizer.step(context)


def step_async(optimizer, context):
    assert optimizer.step_async(context).wait(20) is None


in_both_ways = pytest.mark.parametrize("step", [step, step_async])


@in_both_ways
def test_a_context_that_is_over(layers, step):
    optimizer = autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=0.1)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [forward(layers)])
    with pytest.raises(RpcError, match="no autograd context"):
        step(optimizer, context)


@in_both_ways
def test_a_step_of_an_optimizer_that_is_gone(workers, layers, step):
    optimizer = autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=0.1)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [forward(layers)])
        workers[1].part(StepQueue).optimizers.clear()
        with pytest.raises(RpcError, match="worker 'b' has no such optimizer any more"):
            step(optimizer, context)


stepping = []


class NotesItsThread(SGD):
    def step(self, closure=None):
        stepping.append(threading.current_thread())
        super().step(closure)


def test_an_awaited_step_of_one_s_own_parameters_is_done_by_another_thread(workers):
    stepping.clear()
    weight = tg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = autograd_dist.DistributedOptimizer(NotesItsThread, [tg.RRef(weight)], lr=0.5)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [weight.sum()])
        step_async(optimizer, context)
        step(optimizer, context)
    assert weight.tolist() == [0, 1]
    other, own = stepping
    assert own is threading.current_thread() and other is not own


class Waits(SGD):
    """Optimizer whose step waits until the test lets it go on."""

    go = threading.Event()

    def step(self, closure=None):
        assert self.go.wait(20)
        super().step(closure)


def test_an_awaited_step_keeps_its_optimizer_until_it_is_done(layers, until):
    """Requests for steps are numbers: they keep no reference to the optimizers on the workers."""
    Waits.go.clear()
    optimizer = autograd_dist.DistributedOptimizer(Waits, parameters(layers), lr=0.1)
    optimizers = [weakref.ref(each) for each in optimizer.remote_optimizers]
    before = layers[1].rpc_sync().value()
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [forward(layers)])
        stepped = optimizer.step_async(context)
        del optimizer
        assert not stepped.done() and all(each() for each in optimizers)
        Waits.go.set()
        stepped.wait(20)
    assert not np.array_equal(layers[1].rpc_sync().value(), before)
    until(lambda: not any(each() for each in optimizers))


def test_concurrent_steps_are_all_taken(workers, layers):
    """The sum of linear losses: whatever the order, every step counts once."""
    with rpc.remote("b", Layer, (3, 4, 1)) as layer:
        before = layer.rpc_sync().value()
        optimizer = autograd_dist.DistributedOptimizer(SGD, [layer.rpc_sync().parameter_rref()], lr=1.0)
        a, errors = workers[0], []

        def train():
            try:
                with a.use():
                    for _ in range(10):
                        with autograd_dist.context() as context:
                            autograd_dist.backward(context, [layer.rpc_sync(timeout=20).parameter_sum()])
                            optimizer.step(context)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=train) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors
        np.testing.assert_allclose(layer.rpc_sync().value(), before - 60, rtol=0, atol=1e-9)


Layer.parameter_sum = lambda self: self.weight.sum()


# -- optimizers' own steps


class SignDescent(optim.Optimizer):
    """An optimizer as users write them for PyTorch: only ``step`` is defined."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @tg.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.add_(parameter.grad.sign(), alpha=-group["lr"])


class NoOptimizerAtAll:
    def __init__(self, params, lr):
        self.params, self.lr = params, lr

    def step(self):
        for parameter in self.params:
            parameter.data = parameter.data - self.lr * parameter.grad


ALL = [
    kind
    for name, kind in vars(optim).items()
    if isinstance(kind, type)
    and issubclass(kind, optim.Optimizer)
    and kind not in (optim.Optimizer, optim.LBFGS, optim.SparseAdam)
]


@pytest.mark.parametrize("kind", [*ALL, SignDescent, NoOptimizerAtAll], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("hogwild", [False, True])
def test_every_optimizer_s_own_step_is_called(kind, hogwild):
    with in_process_cluster("a", "b") as (a, _), a.use():
        layer, own = rpc.remote("b", Layer, (1, 4, 5)), Layer(1, 4, 5)
        parameter = layer.rpc_sync().parameter_rref()
        optimizer = autograd_dist.DistributedOptimizer(kind, [parameter], lr=0.01, hogwild=hogwild)
        reference = kind([own.weight], lr=0.01)
        for _ in range(3):
            with autograd_dist.context() as context:
                autograd_dist.backward(context, [layer.rpc_sync().forward(tg.tensor(X)).sum()])
                optimizer.step(context)
            own.weight.grad = None
            own.forward(tg.tensor(X)).sum().backward()
            reference.step()
        np.testing.assert_allclose(layer.rpc_sync().value(), own.value(), rtol=0, atol=1e-12)
        del layer, parameter, optimizer


def test_a_step_needs_a_closure_and_says_so(layers):
    optimizer = autograd_dist.DistributedOptimizer(optim.LBFGS, parameters(layers)[:1], lr=0.1)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [forward(layers)])
        with pytest.raises(ValueError, match="needs a closure"):
            optimizer.step(context)


@pytest.mark.parametrize("hogwild", [False, True])
def test_a_backward_under_way_sees_the_values_of_its_forward_or_in_hogwild_the_present_ones(workers, hogwild):
    weight = tg.tensor([2.0, 3.0], requires_grad=True)
    optimizer = autograd_dist.DistributedOptimizer(SGD, [tg.RRef(weight)], lr=1.0, hogwild=hogwild)
    loss, former = (weight * weight).sum(), weight.data
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [weight.sum()])
        optimizer.step(context)
    assert weight.tolist() == [1.0, 2.0] and (former.tolist() == [1.0, 2.0]) == hogwild
    loss.backward()
    assert weight.grad.tolist() == ([2.0, 4.0] if hogwild else [4.0, 6.0])


def test_grad_is_as_before_after_a_step(workers):
    weight, other = tg.tensor([2.0], requires_grad=True), tg.tensor([5.0], requires_grad=True)
    (weight * other).sum().backward()
    optimizer = autograd_dist.DistributedOptimizer(SGD, [tg.RRef(weight), tg.RRef(other)], lr=1.0)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [weight.sum()])
        optimizer.step(context)
    assert weight.tolist() == [1.0] and other.tolist() == [5.0]
    assert weight.grad.tolist() == [5.0] and other.grad.tolist() == [2.0]


class FailsHalfway(SGD):
    def step(self, closure=None):
        super().step(closure)
        raise ArithmeticError(rpc.get_worker_info().name)


@in_both_ways
def test_failures_of_all_workers_are_told_together_and_leave_parameters(layers, step):
    optimizer = autograd_dist.DistributedOptimizer(FailsHalfway, parameters(layers), lr=0.1)
    before = [layer.rpc_sync().value() for layer in layers]
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [forward(layers)])
        with pytest.raises(RpcError, match=r"step failed on 2 workers: on 'b' ArithmeticError: b; on 'c' Arithm"):
            step(optimizer, context)
    for layer, value in zip(layers, before):
        np.testing.assert_array_equal(layer.rpc_sync().value(), value)


class FailsOnB(SGD):
    def step(self, closure=None):
        if rpc.get_worker_info().name == "b":
            raise KeyError("on one of them")
        super().step(closure)


# Not ``in_both_ways``: the frame of an assertion keeps the future.
@pytest.mark.parametrize("step", [step, lambda *args: autograd_dist.DistributedOptimizer.step_async(*args).wait(20)])
def test_nothing_keeps_an_optimizer_whose_step_failed(workers, layers, step, until, no_collector):
    """Its parts on the workers, with their moments, would live there until a collection here, and one there."""
    optimizer = autograd_dist.DistributedOptimizer(FailsOnB, parameters(layers), lr=0.1)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [forward(layers)])
        with pytest.raises(KeyError, match="on one of them"):
            step(optimizer, context)
    del optimizer
    until(lambda: not any(list(each.part(StepQueue).optimizers) for each in workers))


def test_a_tensor_as_learning_rate(workers):
    weight = tg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = autograd_dist.DistributedOptimizer(SGD, [tg.RRef(weight)], lr=tg.tensor(0.5))
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [weight.sum()])
        optimizer.step(context)
    assert weight.tolist() == [0.5, 1.5]


def test_schedulers_and_state(layers):
    optimizer = autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=1.0, momentum=0.9)
    scheduler = optimizer.schedule(optim.lr_scheduler.StepLR, step_size=2, gamma=0.1)
    for _ in range(3):
        with autograd_dist.context() as context:
            autograd_dist.backward(context, [forward(layers) * 1e-3])
            optimizer.step(context)
        scheduler.step()
    assert scheduler.get_last_lr() == {"b": [pytest.approx(0.1)], "c": [pytest.approx(0.1)]}
    state, rates = optimizer.state_dict(), scheduler.state_dict()
    assert sorted(state) == ["b", "c"] and rates["b"]["last_epoch"] == 3
    again = autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=1.0, momentum=0.9)
    more = again.schedule(optim.lr_scheduler.StepLR, step_size=2, gamma=0.1)
    again.load_state_dict(state)
    more.load_state_dict(rates)
    assert again.state_dict()["b"]["param_groups"][0]["lr"] == pytest.approx(0.1)
    found = again.state_dict()["c"]["state"][0]["momentum_buffer"].numpy()
    np.testing.assert_array_equal(found, state["c"]["state"][0]["momentum_buffer"].numpy())
    with pytest.raises(ValueError, match=r"has the workers \['b'\]; it must have \['b', 'c'\]"):
        again.load_state_dict({"b": state["b"]})


def test_a_scheduler_that_takes_a_metric(layers):
    optimizer = autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=1.0)
    scheduler = optimizer.schedule(optim.lr_scheduler.ReduceLROnPlateau, patience=0, factor=0.5)
    for metric in (1.0, 1.0, 1.0):
        scheduler.step(metric)
    assert scheduler.get_last_lr()["b"] == [0.25]


products = []


class UsesTheWeightMeanwhile(SGD):
    """Optimizer in the midst of whose step somebody else uses the parameter."""

    def step(self, closure=None):
        weight = layer_here.weight
        products.append((weight * weight).sum())
        super().step(closure)


layer_here = Layer(3, 2, 2)


def own_reference():
    return tg.RRef(layer_here.weight)


def test_who_uses_a_parameter_during_a_step_sees_the_former_one_and_can_go_backward(workers):
    products.clear()
    before = layer_here.value()
    optimizer = autograd_dist.DistributedOptimizer(UsesTheWeightMeanwhile, [own_reference()], lr=0.5)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [(layer_here.weight * 3).sum()])
        optimizer.step(context)
    assert np.allclose(layer_here.value(), before - 1.5)
    (product,) = products
    layer_here.weight.grad = None
    product.backward()
    assert np.allclose(layer_here.weight.grad.numpy(), 2 * before)
    layer_here.weight.grad = None


def test_it_steps_where_the_parameters_are_though_numbers_of_workers_are_not_their_ranks():
    with numbered_cluster(a=2, b=3, c=0):
        layers = [rpc.remote("b", Layer, (1, 4, 5)), rpc.remote("c", Layer, (2, 5, 3))]
        optimizer = autograd_dist.DistributedOptimizer(SGD, parameters(layers), lr=0.1)
        before = [layer.rpc_sync().value() for layer in layers]
        with autograd_dist.context() as context:
            autograd_dist.backward(context, [forward(layers)])
            optimizer.step(context)
        for layer, value in zip(layers, before):
            assert not np.array_equal(layer.rpc_sync().value(), value)
