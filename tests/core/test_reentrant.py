"""Backward inside backward to any depth, backward from many threads, and long chains: no limits, no recursion."""

from __future__ import annotations

import copy
import pickle
import threading
import weakref

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import AutogradError

CHAIN = 25_000  # recursion would end at 1000 calls of Python, or with the stack of a thread


def in_threads(count, work):
    """Run ``work(number)`` in threads that start together; what they raised."""
    barrier, errors = threading.Barrier(count), []

    def run(number):
        barrier.wait(10)
        try:
            work(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "deadlock"
    return errors


# -- reentrant


class Deeper(tg.Function):
    """Its backward runs a pass over another one of it, until its number is 0."""

    @staticmethod
    def forward(ctx, x):
        with tg.enable_grad():
            ctx.inner = x.detach().requires_grad_() - 1
        return ctx.inner.detach()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.inner.item() < 0:
            Deeper.deepest()
            return gradient
        with tg.enable_grad():
            Deeper.apply(ctx.inner).sum().backward()
        return gradient * 1

    @staticmethod
    def deepest():
        pass


@pytest.mark.parametrize("depth", [1, 39, 40, 41, 2000])
def test_passes_inside_passes(depth):
    x = tg.tensor(float(depth), requires_grad=True)
    Deeper.apply(x).sum().backward()
    assert x.grad.item() == 1


def test_an_error_far_inside_comes_out(monkeypatch):
    def fail():
        raise KeyError("at the bottom")

    monkeypatch.setattr(Deeper, "deepest", staticmethod(fail))
    x = tg.tensor(200.0, requires_grad=True)
    with pytest.raises(KeyError, match="at the bottom"):
        Deeper.apply(x).sum().backward()
    monkeypatch.undo()
    Deeper.apply(x).sum().backward()
    assert x.grad.item() == 1


def test_passes_inside_passes_see_the_same_context(monkeypatch):
    seen = []
    monkeypatch.setattr(Deeper, "deepest", staticmethod(lambda: seen.append(tg.is_grad_enabled())))
    with tg.autograd.graph.saved_tensors_hooks(lambda tensor: seen.append("saved") or tensor, lambda tensor: tensor):
        Deeper.apply(tg.tensor(100.0, requires_grad=True) * tg.tensor(1.0, requires_grad=True)).backward()
    assert seen == ["saved", "saved", False]


class Again(tg.Function):
    """Its backward goes over its own input's graph once more."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        with tg.enable_grad():
            x.sum().backward(retain_graph=True)
        return gradient * 1


def test_a_pass_over_the_graph_that_is_being_gone_over():
    a = tg.ones(3, requires_grad=True)
    inner = a.exp() * 2
    Again.apply(inner).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 2 * 2 * np.exp(np.ones(3)), rtol=1e-6)


def test_passes_in_hooks_of_every_kind():
    a, other = tg.ones(2, requires_grad=True), tg.zeros(2, requires_grad=True)

    def another(*_):
        with tg.enable_grad():
            (other * 3).sum().backward()

    y = a * 2
    y.register_hook(another)
    y.grad_fn.register_prehook(another)
    y.grad_fn.register_hook(another)
    a.register_hook(another)
    a.register_post_accumulate_grad_hook(another)
    y.sum().backward()
    assert a.grad.tolist() == [2, 2] and other.grad.tolist() == [15, 15]


# -- threads


def test_passes_over_one_graph_of_every_kind_of_node():
    a = tg.tensor(np.linspace(0.5, 1.5, 600), requires_grad=True)
    b = (a * 2).exp() * 1
    b[:300].mul_(0.5)
    y = (tg.sort(b).values * Again.apply(a * 1) + tg.cat([a[300:], a[:300]])).sum() / 600
    (once,) = tg.autograd.grad(y, a, retain_graph=True)
    a.grad = None
    seen = []

    def work(number):
        for _ in range(10):
            found = tg.autograd.grad(y, a, retain_graph=True, create_graph=number % 2 == 0)[0]
            seen.append(np.allclose(found.detach().numpy(), once.numpy()))

    assert not in_threads(6, work) and seen == [True] * 60


def test_graphs_of_several_threads_over_the_same_leaves():
    """As in Hogwild: each thread builds and goes over graphs of its own, and the gradients meet."""
    shared = [tg.ones(1000, dtype=tg.float64, requires_grad=True) for _ in range(3)]

    def work(number):
        for _ in range(50):
            loss = (shared[0] * shared[1]).sum() + (shared[2] * (number + 1)).sum()
            loss.backward()

    assert not in_threads(4, work)
    assert [set(leaf.grad.tolist()) for leaf in shared] == [{200.0}, {200.0}, {50.0 * (1 + 2 + 3 + 4)}]


def test_a_graph_is_built_in_one_thread_and_gone_over_in_another():
    a = tg.ones(4, requires_grad=True)
    outputs = []
    assert not in_threads(1, lambda _: outputs.append((a * 2).sum()))
    assert not in_threads(1, lambda _: outputs.pop().backward())
    assert a.grad.tolist() == [2] * 4


def test_only_one_of_several_passes_over_a_graph_that_is_not_kept_succeeds_in_the_end():
    a = tg.ones(4, requires_grad=True)
    y = a
    for _ in range(200):
        y = y.exp().log()
    y = y.sum()
    errors = in_threads(4, lambda _: y.backward())
    assert all(isinstance(error, AutogradError) and "retain_graph=True" in str(error) for error in errors)
    with pytest.raises(AutogradError, match="retain_graph=True"):
        y.backward()


def test_leaves_are_recorded_by_many_threads_at_once():
    for _ in range(20):
        a = tg.ones(2, requires_grad=True)
        outputs = []
        assert not in_threads(4, lambda _, a=a, outputs=outputs: outputs.append(a * 2))
        assert len({id(output.grad_fn.next_functions[0][0]) for output in outputs}) == 1
        tg.autograd.backward([output.sum() for output in outputs])
        assert a.grad.tolist() == [8, 8]


# -- chains


class Step(tg.Function):
    """Saves its input and its output."""

    @staticmethod
    def forward(ctx, x):
        y = x * 1
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def viewed(y):
    return y.view(1)


def changed(y):
    return y.mul_(1.0)


LINKS = {
    "operations": lambda y: y * 1.0,
    "saved results": tg.tanh,
    "several results": lambda y: y.split(1)[0],
    "custom functions": Step.apply,
    "views": viewed,
    "in place": changed,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKS)
def test_long_chains(name, no_collector):
    a = tg.zeros(1, requires_grad=True)
    first = y = a * 1
    for _ in range(4 * CHAIN if name == "operations" else CHAIN):
        y = LINKS[name](y)
    middle, last = weakref.ref(first.grad_fn), weakref.ref(y.grad_fn)
    assert tg.autograd.grad(y.sum(), a, retain_graph=True)[0].item() == 1
    y.sum().backward()
    assert a.grad.item() == 1
    del y, first
    assert middle() is None and last() is None and (a._accumulator is None or a._accumulator() is None)


@pytest.mark.slow
def test_a_long_chain_of_a_recorded_pass(no_collector):
    a = tg.full((1,), 0.5, dtype=tg.float64, requires_grad=True)
    y = a
    for _ in range(CHAIN // 3):
        y = y * 1.0
        y = tg.sin(y) / tg.sin(y).detach() * y.detach()
    (slope,) = tg.autograd.grad(y, a, create_graph=True)
    (second,) = tg.autograd.grad(slope, a)
    assert np.isfinite(slope.item()) and np.isfinite(second.item())
    node = weakref.ref(slope.grad_fn)
    del y, slope, second
    assert node() is None


@pytest.mark.slow
def test_long_chains_are_not_copied_and_say_so():
    y = tg.ones(1, requires_grad=True)
    for _ in range(CHAIN):
        y = y + 1
    for attempt in (copy.deepcopy, lambda y: copy.deepcopy([y])):
        with pytest.raises(AutogradError, match=r"only leaves can be deep-copied"):
            attempt(y)
    for attempt in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(TypeError, match="node of a graph"):
            attempt(y.grad_fn)
    made = pickle.loads(pickle.dumps(y))
    assert made.is_leaf and made.item() == CHAIN + 1
    assert copy.copy(y).is_leaf and repr(y) and repr(y.grad_fn)


@pytest.mark.slow
def test_a_chain_that_dies_in_the_middle_of_a_pass():
    a = tg.zeros(1, requires_grad=True)
    chains = []
    for _ in range(2):
        y = a
        for _ in range(CHAIN):
            y = y * 1.0
        chains.append(y)
    chains[0].register_hook(lambda gradient: chains.clear())
    chains[0].backward()
    assert not chains and a.grad.item() == 1
