"""User code runs without a lock held: each kind of it calls the library from another thread, and waits."""

from __future__ import annotations

import contextvars
import gc
import threading

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import same
from helpers.threads import elsewhere
from telegrad import rpc
from telegrad.core.futures import Future


def call_all():
    """Every kind of call: of oneself and of others, with and without a reference."""
    others = [rpc.rpc_sync(name, abs, (-number,)) for number, name in enumerate("abc", 1)]
    with rpc.remote("c", list, ((1, 2),)) as reference:
        return [*others, *reference.to_here(), tg.RRef(3).to_here()]


CALLED = [1, 2, 3, 1, 2, 3]


class Noted:
    """Return what finalizers saw, by the name of the worker that made the object."""

    seen = {}  # noqa: RUF012


class Travels:
    """Calls whenever it is pickled or unpickled."""

    def __init__(self, log=()):
        self.log = list(log)

    def __getstate__(self):
        assert elsewhere(call_all) == CALLED
        return [*self.log, f"pickled by {rpc.get_worker_info().name}"]

    def __setstate__(self, log):
        assert elsewhere(call_all) == CALLED
        self.log = [*log, f"unpickled by {rpc.get_worker_info().name}"]


class Dies:
    """Calls when it dies."""

    def __init__(self, name):
        self.name = name

    def __del__(self):
        if self.name is not None:
            Noted.seen[self.name] = elsewhere(call_all) == CALLED


class Fails(Exception):
    def __reduce__(self):
        assert elsewhere(call_all) == CALLED
        return Fails, self.args


def work():
    return elsewhere(call_all)


def fail():
    raise Fails("as it should")


@rpc.functions.async_execution
def later():
    future, context = Future(), contextvars.copy_context()
    threading.Thread(target=lambda: context.run(lambda: future.set_result(elsewhere(call_all)))).start()
    return future.then(lambda done: done.value() == elsewhere(call_all))


@pytest.fixture(autouse=True)
def nothing_seen():
    Noted.seen.clear()
    yield
    gc.collect()
    Noted.seen.clear()


def test_functions(workers):
    assert rpc.rpc_sync("b", work) == rpc.rpc_sync("a", work) == CALLED
    assert rpc.rpc_sync("b", later) is True


def test_picklers(workers):
    stations = ["pickled by a", "unpickled by b", "pickled by b", "unpickled by a"]
    # An attempt to pickle may be made more than once; each must come through.
    found = rpc.rpc_sync("b", same, (Travels(),)).log
    assert list(dict.fromkeys(found)) == stations
    with rpc.remote("b", same, (Travels(),)) as reference:
        assert list(dict.fromkeys(reference.to_here().log)) == stations


def test_exceptions(workers):
    with pytest.raises(Fails, match="as it should"):
        rpc.rpc_sync("b", fail)


def test_callbacks(workers, until):
    seen = []
    future = rpc.rpc_async("b", abs, (-1,))
    future.add_done_callback(lambda done: seen.append(elsewhere(call_all)))
    assert future.then(lambda done: elsewhere(call_all)).wait(20) == CALLED
    assert until(lambda: seen) == [CALLED]


def test_finalizers_of_arguments_and_values(workers, until):
    rpc.rpc_sync("b", len, ([Unsent("argument")],))
    reference = rpc.remote("b", Dies, ("value",))
    reference.to_here().name = None
    reference.release()
    own = tg.RRef(Dies("own"))
    del own
    future = rpc.rpc_async("b", Dies, ("result",))
    future.wait().name = None
    del future
    until(lambda: Noted.seen.keys() >= {"argument", "value", "own"})
    assert all(Noted.seen.values())


class Unsent(Dies):
    """Only the copy that travels speaks."""

    def __reduce__(self):
        name, self.name = self.name, None
        return Dies, (name,)


def test_contexts_hooks_and_functions_of_a_backward(workers):
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    seen = []

    class Calls(tg.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(elsewhere(call_all) == CALLED)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen.append(elsewhere(call_all) == CALLED)
            return gradient * 2

    with tg.autograd_dist.context() as context:
        y = Calls.apply(rpc.rpc_sync("b", tg.mul, (x, x)))
        y.register_hook(lambda gradient: seen.append(elsewhere(call_all) == CALLED))
        tg.autograd_dist.backward(context, [y.sum()])
        assert tg.autograd_dist.get_gradients(context)[x].tolist() == [4, 8]
    assert seen == [True] * 3


def run_backward(leaf):
    with tg.enable_grad():
        (leaf * 2).sum().backward()
    return leaf.grad.tolist()


def test_what_local_gradients_run():
    """Hooks, functions, packers and finalizers of gradients: each runs a pass over the same leaf in another thread."""
    leaf, seen = tg.zeros(2, requires_grad=True), []

    class Old(tg.Tensor):
        def __del__(self):
            seen.append(elsewhere(run_backward, tg.zeros(2, requires_grad=True)))

    other = tg.zeros(2, requires_grad=True)
    other.grad = Old(np.ones(2, np.float32))
    (other * other).sum().backward(create_graph=True)  # replaces .grad
    other.grad = None
    assert seen == [[2, 2]]
    leaf.register_hook(lambda gradient: seen.append(elsewhere(run_backward, tg.zeros(2, requires_grad=True))))
    leaf.register_post_accumulate_grad_hook(lambda tensor: seen.append(elsewhere(lambda: tensor.grad.tolist())))
    hooks = tg.autograd.graph.saved_tensors_hooks(
        lambda tensor: elsewhere(run_backward, tg.zeros(2, requires_grad=True)) and tensor,
        lambda tensor: elsewhere(run_backward, tg.zeros(2, requires_grad=True)) and tensor,
    )
    with hooks:
        y = (leaf * 3).exp()
    y.sum().backward()
    assert seen == [[2, 2]] * 2 + [[3, 3]]
