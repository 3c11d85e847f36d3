"""Objects keep their identity while anything holds their tensor: the graph, a gradient, a module, a reference, a hook."""

from __future__ import annotations

import weakref
from functools import partial

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn, optim, rpc

pytestmark = pytest.mark.usefixtures("no_collector")


class Tagged(tg.Tensor):
    """A subclass with a constructor of its own, which nobody calls again."""

    made = 0

    def __init__(self, values, tag, requires_grad=False):
        super().__init__(np.array(values, np.float64), requires_grad)
        self.tag = tag
        Tagged.made += 1


def tagged(requires_grad=True):
    """A tensor that only its caller holds, and a weak reference to it."""
    tensor = Tagged([1, 2], ["mine"], requires_grad)
    return tensor, weakref.ref(tensor)


def is_itself(tensor, reference):
    return tensor is reference() and type(tensor) is Tagged and tensor.tag == ["mine"]


class Saves(tg.Function):
    @staticmethod
    def forward(ctx, x, *more):
        y = x * 2
        ctx.save_for_backward(x, y)
        ctx.more = more
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        Saves.seen = (x, y, ctx.more)
        return (gradient * 2, *(None for _ in ctx.more))


def test_as_a_leaf_of_a_graph():
    x, reference = tagged()
    y = (x * 3).sum()
    del x
    leaf = y.grad_fn.next_functions[0][0].next_functions[0][0]
    assert is_itself(leaf.variable, reference)
    y.backward()
    assert reference().grad.tolist() == [3, 3]
    del y, leaf
    assert reference() is None


@pytest.mark.parametrize("requires_grad", [True, False])
def test_as_a_saved_input_of_an_operation(requires_grad):
    x, reference = tagged(requires_grad)
    w = tg.ones(2, dtype=tg.float64, requires_grad=True)
    y = (w * x).sum()
    del x
    assert reference() is not None
    (slope,) = tg.autograd.grad(y, w, create_graph=True)
    assert is_itself(reference(), reference) and slope.tolist() == [1, 2]
    y.backward()  # frees what was saved
    assert requires_grad or reference() is None
    del y, slope
    assert reference() is None


@pytest.mark.parametrize("requires_grad", [True, False])
def test_as_a_saved_input_of_a_custom_function(requires_grad):
    x, reference = tagged(requires_grad)
    w = tg.ones(2, dtype=tg.float64, requires_grad=True)
    y = Saves.apply(w if not requires_grad else x, x)
    z = Saves.apply(x * w)
    z.note = "output"
    node = y.grad_fn
    del x
    y.sum().backward(retain_graph=True)
    saved, output, more = Saves.seen
    assert output is y and is_itself(more[0], reference) and (saved is more[0]) == requires_grad
    assert all(one is other for one, other in zip(node.saved_tensors, (saved, y)))
    z.sum().backward(retain_graph=True)
    assert Saves.seen[1] is z and Saves.seen[1].note == "output"
    del saved, output, more, y, node, z
    Saves.seen = None
    assert reference() is None


def test_as_a_gradient():
    gradient, reference = tagged(False)
    x = tg.zeros(2, dtype=tg.float64, requires_grad=True)
    x.grad = gradient
    del gradient
    assert is_itself(x.grad, reference) and x.grad is x.grad
    (x * 1).sum().backward()
    assert is_itself(x.grad, reference) and x.grad.tolist() == [2, 3], "it was added to in place"
    x.grad = None
    assert reference() is None
    (x * 1).sum().backward()
    first = x.grad
    first.note = "seen"
    (x * 1).sum().backward()
    assert x.grad is first and x.grad.note == "seen" and first.tolist() == [2, 2]


def test_as_a_parameter_or_buffer_of_a_module():
    class Special(nn.Parameter):
        pass

    module = nn.Module()
    parameter, (buffer, of_buffer) = Special(tg.ones(2)), tagged(False)
    parameter.tag = ["mine"]
    of_parameter = weakref.ref(parameter)
    module.weight = parameter
    module.register_buffer("state", buffer)
    del parameter, buffer
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    (module.weight * module.state.to(tg.float32)).sum().backward()
    optimizer.step()
    assert module.weight is of_parameter() is next(module.parameters()) is optimizer.param_groups[0]["params"][0]
    assert module.weight.tag == ["mine"] and type(module.weight) is Special
    assert is_itself(module.state, of_buffer) and is_itself(dict(module.named_buffers())["state"], of_buffer)
    module.load_state_dict({"weight": tg.zeros(2), "state": tg.zeros(2, dtype=tg.float64)})
    module.to(tg.float64)
    assert module.weight is of_parameter() and module.weight.dtype == tg.float64
    del module, optimizer
    assert of_parameter() is None and of_buffer() is None


def test_as_the_value_of_a_reference(workers):
    x, reference = tagged()
    remote = tg.RRef(x)
    del x
    assert is_itself(remote.local_value(), reference) and is_itself(remote.to_here(), reference)
    assert rpc.rpc_sync("a", lambda r: id(r.local_value()), (remote,)) == id(reference())
    other = rpc.rpc_sync("b", lambda r: r, (remote,))
    del remote
    assert is_itself(other.local_value(), reference), "the owner keeps it for the one that came back"
    other.release()
    del other


def test_a_value_that_is_made_far_away(workers):
    with rpc.remote("b", Tagged, ([1, 2], ["mine"], True)) as remote:
        assert rpc.rpc_sync("b", same_twice, (remote,))
        (made,) = (remote.to_here(),)
        assert type(made) is Tagged and made.tag == ["mine"] and made.requires_grad


def same_twice(remote):
    value = remote.local_value()
    value.note = 1
    weakly = weakref.ref(value)
    del value
    return weakly() is remote.local_value() and remote.local_value().note == 1


def test_as_what_a_hook_closes_over_and_what_a_node_notes():
    x, reference = tagged()
    y = tg.ones(2, requires_grad=True) * 2
    y.register_hook(partial(print, x))
    z = y * 1
    z.grad_fn.metadata["x"] = x
    del x, y
    assert is_itself(z.grad_fn.metadata["x"], reference)
    del z
    assert reference() is None


def test_in_containers_lists_and_dictionaries():
    x, reference = tagged(False)
    module = nn.ParameterList([nn.Parameter(tg.ones(1))])
    module.extra = [x]
    kept = {x: "by identity"}
    del x
    assert is_itself(module.extra[0], reference) and kept[module.extra[0]] == "by identity"
    del module, kept
    assert reference() is None


def test_nothing_is_made_again():
    before = Tagged.made
    x, reference = tagged()
    y = Saves.apply(x).sum() + (x * x).sum()
    tg.autograd.grad(y, x, create_graph=True)
    y.backward()
    assert Tagged.made == before + 1 and is_itself(x, reference)
    Saves.seen = None


def test_nodes_are_themselves_on_every_way_to_them():
    x = tg.ones(2, requires_grad=True)
    y = x.exp()
    total = y + y
    (first, _), (second, _) = total.grad_fn.next_functions
    assert y.grad_fn is y.grad_fn is first is second is (y * 2).grad_fn.next_functions[0][0]
    leaves = [each.grad_fn.next_functions[0][0] for each in (y, x * 2, x.sum(), Split.apply(x)[0])]
    assert all(leaf is tg.autograd.graph.get_gradient_edge(x)[0] for leaf in leaves) and leaves[0].variable is x
    y.grad_fn.metadata["mark"] = 1
    assert total.grad_fn.next_functions[1][0].metadata == {"mark": 1}
    a, b = Split.apply(x)
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)
    assert (a * 1).grad_fn.next_functions[0] == (a.grad_fn, 0) and (b * 1).grad_fn.next_functions[0] == (a.grad_fn, 1)
    row, again = total[0], total[0]
    assert row.grad_fn is row.grad_fn and row.grad_fn is not again.grad_fn
    assert row.grad_fn.next_functions[0][0] is again.grad_fn.next_functions[0][0] is total.grad_fn


class Split(tg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1, x * 2

    @staticmethod
    def backward(ctx, one, two):
        return one + two * 2
