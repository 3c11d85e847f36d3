"""Graphs without reference cycles: they and their memory are gone when the last reference is, in every way to end."""

from __future__ import annotations

import gc
import os
import platform
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
import telegrad.core as tg
from telegrad.base.allocator import ENVIRONMENT
from telegrad.core.autograd import grad
from telegrad.core.extend import attach, fused, gradient_edge

pytestmark = pytest.mark.usefixtures("no_collector")


class SavesBoth(tg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        return gradient * y + 0 * x


def simple(a):
    return (a.exp() * a + tg.cat([a, a])[:3].sum()).log()


def custom(a):
    return SavesBoth.apply(a) * 2


def views(a):
    b = a * 2
    row, flat = b[0:1], b.view(-1)
    row.mul_(3)
    flat.exp_()
    return b


def hooked(a):
    b = a * 2
    handle = b.register_hook(lambda g: handle.remove())
    b.retain_grad()
    b.grad_fn.register_hook(lambda inputs, outputs: None)
    return b


def softmaxed(a):
    return tg.cross_entropy(a.reshape(1, 3), tg.tensor([1]))


def recorded_gradient(a):
    return grad((a * a * a).sum(), a, create_graph=True)[0]


def doubled(a):
    b = a * 3
    (output,) = fused("Double", (b,), [b.numpy(force=True) * 2], lambda grads, _: [grads[0] * 2], lambda b: [b * 2])
    return output


GRAPHS = [simple, custom, views, hooked, softmaxed, recorded_gradient, doubled]
ENDS = ["dropped", "backward", "retained", "failed"]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("build", GRAPHS)
def test_everything_dies_with_the_last_output(build, end):
    a = tg.ones(3, requires_grad=True)
    output = build(a)
    node, parents = weakref.ref(output.grad_fn), [weakref.ref(edge[0]) for edge in output.grad_fn.next_edges if edge]
    array = weakref.ref(output.numpy(force=True))
    if end == "backward":
        output.sum().backward()
    elif end == "retained":
        output.sum().backward(retain_graph=True)
    elif end == "failed":
        output.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            output.sum().backward()
    a.grad = None
    del output
    assert node() is None and array() is None and all(parent() is None for parent in parents)
    assert a._accumulator is None or a._accumulator() is None


def test_memory_returns_to_zero():
    def once():
        a = tg.ones(100, 100, requires_grad=True)
        for build in (lambda a: a.exp() * a, custom, views):
            build(a).sum().backward()
            build(a)

    once()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        once()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # Free lists of Python and NumPy keep some small blocks; one array leaked each time would be 4 MB.
    assert after - before < 400_000


def test_attached_graphs_die_too():
    leaf = tg.ones(2, requires_grad=True)
    tensor = attach(np.ones(2), (leaf * 2).grad_fn, 0)
    node = weakref.ref(tensor.grad_fn)
    edge = gradient_edge(tensor)
    del tensor
    assert node() is edge[0]
    del edge
    assert node() is None


def test_identity_attributes_and_subclass_survive_in_the_graph():
    class Tagged(tg.Tensor):
        pass

    a = Tagged(np.ones(2, np.float32), True)
    a.tag = "mine"
    reference = weakref.ref(a)
    y = a.exp()
    del a
    ((node, _),) = y.grad_fn.next_functions
    assert reference() is node.variable and node.variable.tag == "mine" and type(node.variable) is Tagged
    y.sum().backward()
    assert node.variable.grad is not None
    del node, y
    assert reference() is None


def test_finalizers_that_run_backward_and_collect_in_the_middle_of_backward():
    a = tg.zeros(3, requires_grad=True)
    other = tg.zeros(3, requires_grad=True)
    ran = []

    class Evil:
        def __del__(self):
            gc.collect()
            with tg.enable_grad():
                (a * 2 + other).sum().backward()
            ran.append(1)

    class Trigger(tg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.evil = Evil()
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            del ctx.evil
            gc.collect()
            return gradient

    y = (Trigger.apply(a) + a * 3).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "deadlock"
    assert ran == [1] and a.grad.tolist() == [6, 6, 6] and other.grad.tolist() == [1, 1, 1]


def test_finalizers_that_resurrect_and_store():
    graveyard = []

    class Undead(tg.Tensor):
        def __del__(self):
            graveyard.append(self)

    a = Undead(np.ones(2), True)
    y = (a * 2).sum()
    del a
    y.backward()
    del y
    (a,) = graveyard
    assert a.grad.tolist() == [2, 2]
    (a * 3).sum().backward()
    assert a.grad.tolist() == [5, 5]
    graveyard.clear()


def test_cycles_of_the_users_making_are_collected():
    a = tg.ones(2, requires_grad=True)
    y = a * 2
    y.grad_fn.metadata["y"] = y
    y.itself = y
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is not None
    gc.collect()
    assert node() is None


def test_deep_graphs_are_freed_without_recursion_whatever_they_hold():
    a = tg.ones(1, requires_grad=True)
    y = a
    for k in range(100_000):
        y = SavesBoth.apply(y) if k % 1000 == 0 else y.tanh() if k % 2 else y.view(1)
    del y


FAULTS = """
import resource
import telegrad as tg
{setting}
def faults(count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        [tg.ones(512, 512) for _ in range(16)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(2)
print(faults(10))
"""


@pytest.mark.parametrize(
    "setting, environment, kept",
    [
        ("", {}, False),
        ("", ENVIRONMENT, True),
        ("tg.allocator.keep_freed_memory()", {}, True),
        ("tg.allocator.keep_freed_memory()", {"MALLOC_TRIM_THRESHOLD_": "0"}, False),
    ],
    ids=["import", "worker", "call", "user"],
)
def test_freed_memory_is_kept_on_request_only(run_python, setting, environment, kept):
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("another allocator")
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    faults = int(run_python("-c", FAULTS.format(setting=setting), env=own | environment))
    assert (faults < 10 * 16 * 128) is kept, "page faults for 160 arrays of 256 pages"


RESERVES = """
import resource, sys, threading
from pathlib import Path
from telegrad.base.allocator import share_arenas
if sys.argv[1] == "limited":
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
def size():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
share_arenas()
threading.stack_size(1 << 20)
before, over = size(), threading.Event()
started = threading.Barrier(7)
def run():
    bytes(1000)
    started.wait()
    over.wait()
for _ in range(6):
    threading.Thread(target=run).start()
started.wait()
print((size() - before) >> 20)
over.set()
"""


@pytest.mark.parametrize(
    "limit, environment, shared",
    [("limited", {}, True), ("limited", {"MALLOC_ARENA_MAX": "8"}, False), ("unlimited", {}, False)],
)
def test_threads_share_arenas_if_the_address_space_is_limited(run_python, limit, environment, shared):
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("another allocator")
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    grown = int(run_python("-c", RESERVES, limit, env=own | environment))
    assert (grown < 3 * 64) is shared, "six threads, of which each may reserve 64 MiB"
