"""With the collector off everything dies with its last output, whatever happened; and finalizers may do what they like."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from functools import partial

import numpy as np
import pytest
import telegrad as tg
from telegrad.core.errors import AutogradError


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Saves(tg.Function):
    """Saves what it was given and what it returned; ``fails`` says where it raises."""

    @staticmethod
    def forward(ctx, x, fails=""):
        y, z = x.exp(), x * 2
        ctx.save_for_backward(x, y, z)
        ctx.fails = fails
        if fails == "forward":
            raise KeyError("in forward")
        return y, z

    @staticmethod
    def backward(ctx, by_y, by_z):
        x, y, _ = ctx.saved_tensors
        if ctx.fails == "backward":
            raise KeyError("in backward")
        return by_y * y + by_z * 2 + x * 0, None


def dropped(a):
    return Saves.apply(a)


def one_output_dropped(a):
    return Saves.apply(a)[1:]


def gone_over(a):
    y, z = Saves.apply(a)
    (y + z).sum().backward()
    return y, z


def gone_over_and_kept(a):
    y, z = Saves.apply(a)
    (y + z).sum().backward(retain_graph=True)
    return y, z


def recorded(a):
    y, z = Saves.apply(a)
    slope = tg.autograd.grad((y * z).sum(), a, create_graph=True)
    return (y, z, *slope, *tg.autograd.grad(slope[0].sum(), a, create_graph=True))


def failed_in_forward(a):
    try:
        Saves.apply(a, "forward")
    except KeyError:
        return Saves.apply(a)
    raise AssertionError


def failed_in_backward(a):
    y, z = Saves.apply(a * 1, "backward")
    try:
        (y + z).sum().backward()
    except KeyError:
        return y, z
    raise AssertionError


def failed_in_a_recorded_pass(a):
    y, z = Saves.apply(a * 1, "backward")
    try:
        tg.autograd.grad((y + z).sum(), a, create_graph=True)
    except KeyError:
        return y, z
    raise AssertionError


def gone_over_once_too_often(a):
    y, z = gone_over(a)
    try:
        z.sum().backward()
    except AutogradError:
        return y, z
    raise AssertionError


def modified_in_place(a):
    b = a * 1
    y, z = Saves.apply(b)
    b.add_(1)
    try:
        y.sum().backward()
    except AutogradError:
        return y, z
    raise AssertionError


def hooked(a):
    y, z = Saves.apply(a)
    y.register_hook(lambda gradient: gradient * 2)
    y.retain_grad()
    z.grad_fn.register_hook(lambda grad_inputs, grad_outputs: None)
    handles = [z.grad_fn.register_prehook(lambda grad_outputs: handles[0].remove())]
    (y + z).sum().backward()
    return y, z


def with_a_hook_that_failed(a):
    y, z = Saves.apply(a)
    y.register_hook(lambda gradient: 1 / 0)
    try:
        (y + z).sum().backward()
    except ZeroDivisionError:
        return y, z
    raise AssertionError


def under_anomaly_mode(a):
    with tg.autograd.detect_anomaly():
        return gone_over_and_kept(a)


def profiled(a):
    with tg.profiler.profile(profile_memory=True):
        return gone_over_and_kept(a)


def in_place_and_views(a):
    y, z = Saves.apply(a)
    w = y * 1
    w[1:].mul_(z[1:])
    w.view(-1)[0] = z[0]
    w.sum().backward()
    return y, z, w


def without_recording(a):
    with tg.no_grad():
        return Saves.apply(a)


CASES = [
    dropped, one_output_dropped, gone_over, gone_over_and_kept, recorded, failed_in_forward, failed_in_backward,
    failed_in_a_recorded_pass, gone_over_once_too_often, modified_in_place, hooked, with_a_hook_that_failed,
    under_anomaly_mode, profiled, in_place_and_views, without_recording,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_all_dies_with_the_last_output(case):
    a = tg.ones(3, dtype=tg.float64, requires_grad=True)
    outputs = case(a)
    watched = [weakref.ref(output._array) for output in outputs]
    watched += [weakref.ref(output.grad_fn) for output in outputs if output.grad_fn]
    watched += [weakref.ref(output.grad_fn.ctx) for output in outputs if hasattr(output.grad_fn, "ctx")]
    leaf = weakref.ref(a)
    assert outputs[0] is not None and watched
    del outputs, a
    assert [each() for each in watched] == [None] * len(watched)
    assert leaf() is None


def test_memory_returns_to_zero_in_all_these_cases():
    def once():
        for case in CASES:
            case(tg.ones(50_000, dtype=tg.float64, requires_grad=True))

    once()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            once()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Python's lists of freed tuples keep some small blocks; a single array would be 400,000.
    assert after - before < 200_000


def test_nothing_is_left_for_the_collector():
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for case in CASES:
            case(tg.ones(3, dtype=tg.float64, requires_grad=True))
        gc.collect()
        left = [each for each in gc.garbage if isinstance(each, (tg.Tensor, tg.autograd.Node, np.ndarray))]
        assert not left
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


# -- finalizers


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


# -- contexts that outlive their nodes


def test_a_context_without_its_node_says_what_to_do():
    kept = []

    class Keeps(tg.Function):
        @staticmethod
        def forward(ctx, x):
            kept.append(ctx)
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    uses = {
        "saved_tensors": lambda ctx: ctx.saved_tensors,
        "next_functions": lambda ctx: ctx.next_functions,
        "metadata": lambda ctx: ctx.metadata,
        "name": lambda ctx: ctx.name(),
        "register_hook": lambda ctx: ctx.register_hook(print),
        "register_prehook": lambda ctx: ctx.register_prehook(print),
    }
    y = Keeps.apply(tg.ones(2, requires_grad=True))
    with tg.no_grad():
        z = Keeps.apply(tg.ones(2, requires_grad=True))
    ctx, unrecorded = kept
    assert z.is_leaf and len(ctx.saved_tensors) == 1
    for name, use in uses.items():
        use(ctx)
        with pytest.raises(
            AutogradError, match=rf"ctx.{name} exists once forward has returned and only if gradients are"
        ):
            use(unrecorded)
    del y
    for name, use in uses.items():
        with pytest.raises(AutogradError, match=rf"ctx.{name} died with the outputs of this function: keep an output"):
            use(ctx)
    ctx.note = "an attribute stays"
    assert ctx.needs_input_grad == (True,) and ctx.note
