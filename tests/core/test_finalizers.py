"""Finalizers may do what they like: run passes, collect garbage, keep the dead, from many threads."""

from __future__ import annotations

import gc
import threading
import weakref
from functools import partial

import numpy as np
import pytest
import telegrad as tg

pytestmark = pytest.mark.usefixtures("no_collector")


class Dying(tg.Tensor):
    """Calls ``last(self)`` when it dies."""

    last = None

    def __del__(self):
        if self.last is not None:
            self.last(self)


def dying(last, requires_grad=False):
    result = Dying(np.ones(3), requires_grad)
    result.last = last
    return result


def collect_and_go_over(shared):
    gc.collect()
    with tg.enable_grad():
        (shared * 2).sum().backward()
    gc.collect()


def in_time(work):
    """Run it in a thread, so that a deadlock is a failure."""
    errors = []

    def run():
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "deadlock"
    assert not errors, errors


@pytest.mark.parametrize("keep", [False, True], ids=["freed", "kept"])
def test_a_saved_tensor_whose_death_in_the_middle_runs_a_pass(keep):
    """The engine frees what was saved; its finalizer collects and runs a pass over the very leaf that is being reached."""
    a, deaths = tg.zeros(3, dtype=tg.float64, requires_grad=True), []

    def last(_):
        deaths.append(1)
        collect_and_go_over(a)

    def build():
        y = a * 1
        for _ in range(5):
            y = y * dying(last)
        return y.sum()

    loss = build()
    in_time(partial(loss.backward, retain_graph=keep))
    assert len(deaths) == (0 if keep else 5)
    loss = None
    assert len(deaths) == 5 and a.grad.tolist() == [1 + 5 * 2] * 3


def test_a_context_whose_death_runs_a_pass():
    a, deaths = tg.zeros(3, dtype=tg.float64, requires_grad=True), []

    class Evil:
        def __del__(self):
            deaths.append(1)
            collect_and_go_over(a)

    class Holds(tg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.evil, ctx.cycle = Evil(), ctx
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            ctx.evil = Evil()  # the former one dies here
            return gradient

    loss = Holds.apply(a).sum()
    in_time(loss.backward)
    assert deaths == [1] and a.grad.tolist() == [3] * 3
    del loss
    gc.collect()
    assert deaths == [1, 1] and a.grad.tolist() == [5] * 3


def test_a_gradient_whose_death_runs_a_pass():
    a, deaths = tg.zeros(3, dtype=tg.float64, requires_grad=True), []

    def last(_):
        deaths.append(1)
        collect_and_go_over(a)

    a.grad = dying(last)
    in_time(lambda: a.sum().backward(create_graph=True))  # replaces the gradient
    assert deaths == [1] and a.grad.tolist() == [1 + 1 + 2] * 3
    a.grad = dying(last)
    a.grad = None
    assert deaths == [1, 1] and a.grad.tolist() == [2] * 3


def test_the_graph_that_dies_in_its_own_hook():
    a, seen = tg.ones(3, requires_grad=True), []
    holder = [(a * 2).exp()]

    def drop(gradient):
        holder.clear()
        gc.collect()
        seen.append(1)

    holder[0].register_hook(drop)
    in_time(lambda: holder[0].sum().backward())
    assert seen == [1] and np.allclose(a.grad.numpy(), 2 * np.exp(2))


def test_collecting_at_every_step():
    a = tg.ones(3, dtype=tg.float64, requires_grad=True)
    garbage = []

    def collect(gradient):
        gc.collect()

    y = a
    for _ in range(20):
        y = y.exp().log() * 1
        y.register_hook(collect)
        cycle = [y.detach()]
        cycle.append(cycle)
        garbage.append(weakref.ref(cycle[0]))
        del cycle
    in_time(y.sum().backward)
    np.testing.assert_allclose(a.grad.numpy(), np.ones(3))
    assert all(each() is None for each in garbage)


def test_the_dead_that_come_back_are_whole():
    back = []
    x = dying(back.append, True)
    x.tag = "mine"
    y = (x * 3).sum()
    y.backward()
    del x, y
    (x,) = back
    back.clear()
    assert type(x) is Dying and x.tag == "mine" and x.grad.tolist() == [3] * 3 and x.is_leaf
    (x * 2).sum().backward()
    assert x.grad.tolist() == [5] * 3
    again = weakref.ref(x)
    del x
    assert again() is None, "Python runs a finalizer once"


def test_a_finalizer_that_stores_the_tensor_in_a_graph():
    weight, stored = tg.ones(3, dtype=tg.float64, requires_grad=True), []
    x = dying(lambda tensor: stored.append((weight * tensor).sum()))
    reference = weakref.ref(x)
    del x
    (loss,) = stored
    assert reference() is not None, "it is alive, and so are weak references to it"
    loss.backward()
    del loss
    stored.clear()
    assert reference() is None and weight.grad.tolist() == [1] * 3


def test_a_result_that_comes_back_has_its_history():
    back = []
    a = tg.ones(3, dtype=tg.float64, requires_grad=True)

    class Class(Dying):
        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            result = super().__tensor_function__(func, types, args, kwargs)
            if isinstance(result, cls):
                result.last = back.append
            return result

    y = Class(np.ones(3)) * a
    node = y.grad_fn
    del y
    (y,) = back
    back.clear()
    assert y.grad_fn is node
    y.last = None
    y.sum().backward()
    assert a.grad.tolist() == [1] * 3


def test_finalizers_in_cycles():
    seen = []
    a = dying(lambda tensor: seen.append(tensor.tolist()), True)
    y = a * 2
    y.register_hook(lambda gradient, y=y: y and None)
    a.graph, reference = y, weakref.ref(y.grad_fn)
    del a, y
    assert not seen and reference() is not None
    gc.collect()
    assert seen == [[1, 1, 1]]
    gc.collect()
    assert reference() is None


def test_finalizers_of_many_threads():
    a = tg.zeros(100, requires_grad=True)

    def work():
        for _ in range(30):
            y = a * dying(lambda tensor: collect_some(a)).to(tg.float32)[0]
            y.sum().backward()

    def collect_some(shared):
        with tg.enable_grad():
            (shared * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "deadlock"
    assert set(a.grad.tolist()) == {3 * 30 * (1 + 2.0)}
