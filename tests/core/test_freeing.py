"""With the collector off, graphs and all that they saved die with their last output, whatever happened."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import AutogradError

pytestmark = pytest.mark.usefixtures("no_collector")


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
    watched = [weakref.ref(output.numpy(force=True)) for output in outputs]
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
        with pytest.raises(AutogradError, match=rf"ctx.{name} exists once forward has returned"):
            use(unrecorded)
    del y
    for name, use in uses.items():
        with pytest.raises(AutogradError, match=rf"ctx.{name} died with the outputs"):
            use(ctx)
    ctx.note = "an attribute stays"
    assert ctx.needs_input_grad == (True,) and ctx.note
