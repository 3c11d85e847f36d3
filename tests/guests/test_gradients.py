"""Gradients go through PyTorch's graphs on several workers as through one graph."""

import weakref

import pytest
from helpers import remote
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist import backward, get_gradients
from telegrad.base.errors import AutogradError
from telegrad.interop import convert

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch

pytestmark = pytest.mark.usefixtures("leaves", "contexts_end")


@pytest.fixture
def leaves(wide_numbers):
    Weights.kept = {name: torch.randn(4, 4, requires_grad=True) for name in ("w1", "w2", "w3")}
    yield
    Weights.kept = {}


class Box(dict):
    """Object with tensors in it."""

    def clone(self):
        return self


class Weights:
    """Leaves that functions on all workers of this process use."""

    kept = {}  # noqa: RUF012


# -- functions on other workers


def square(x):
    return (Weights.kept["w2"] @ x) ** 2


def two(x):
    y = torch.tanh(Weights.kept["w3"] @ x)
    return {"y": y, "deep": [y.sum(0)]}


def in_place(x):
    return x.mul_(Weights.kept["w2"]).relu_() + 1


def two_rows(x):
    return torch.sin(x) * Weights.kept["w2"][:2]


def onwards(x, route):
    y = torch.sin(Weights.kept["w3"] @ x)
    return y * x if not route else rpc.rpc_sync(route[0], onwards, (y, route[1:])) + x


def penalty(x):
    """A loss with the gradient of another one, whose graph is differentiated, too."""
    y = torch.tanh(Weights.kept["w2"] @ x).sum()
    (slope,) = torch.autograd.grad(y, x, create_graph=True)
    return (slope.norm() - 1) ** 2 + y


def unpack(box):
    first, (row, turned) = box["nested"]
    return {"both": [first @ Weights.kept["w2"] + row, (turned * box["whole"].sum(),)], "again": box["again"]}


def gradients(context_id, name):
    return get_gradients(context_id).get(Weights.kept[name])


def there(to):
    return lambda function, *args: rpc.rpc_sync(to, function, args)


# -- the same with calls that stay here, and with calls of other workers


def sent_and_used(call):
    """The spike's first case: a leaf is reached through what is sent, and past it."""
    x = torch.tanh(Weights.kept["w1"] @ torch.eye(4))
    return (call(square, x) * torch.sin(x) * Weights.kept["w1"][0]).sum()


def cut(call):
    """Its second case: what is below runs once, with the sum."""
    x = torch.tanh(Weights.kept["w1"] @ torch.eye(4))
    return (call(square, x) * torch.sin(x)).sum()


def depths(call):
    """Several sends, each above the one before."""
    x = Weights.kept["w1"] * 1.5
    for _ in range(4):
        x = call(square, torch.tanh(x)) * 0.1 + x
    return x.sum()


def lower_one_later(call):
    """A tensor is sent after one that is made from it, and both are used on."""
    below = torch.tanh(Weights.kept["w1"] @ torch.eye(4))
    above = torch.exp(below)
    y, z = call(square, above), call(square, below)
    return (y + z).sum() * 0.01 + (torch.sin(below) * torch.cos(above)).sum()


def many_outputs(call):
    x = Weights.kept["w1"].sin()
    both = call(two, x)
    left, right = torch.split(both["y"], 2)
    return (call(square, torch.cat([right, left])) * both["deep"][0]).sum() + call(square, x).sum()


def changed_in_place(call):
    x = Weights.kept["w1"] * 1.0
    y = call(in_place, x)
    y.add_(x)
    return (y * call(square, y)).sum()


def leaves_and_relays(call):
    """A leaf is sent itself, and what arrived is sent on unchanged."""
    arrived = call(square, Weights.kept["w1"])
    return (call(square, arrived) + arrived).sum() * 0.01 + Weights.kept["w1"].sum()


def hooked(call):
    """A hook runs once for each part of a gradient, also one of a tensor that is gone, or that was sent before."""

    def inner():
        x = torch.tanh(Weights.kept["w1"] @ torch.eye(4))
        x.register_hook(lambda gradient: gradient * 2)
        y = call(square, x)
        x.register_hook(lambda gradient: gradient * 3)
        return y, x * 0.1

    y, z = inner()
    return (y * z).sum()


def changed_after_it_was_sent(call):
    x = Weights.kept["w1"] * 1.5
    row = x[1]
    y = call(square, row)
    row.mul_(2)
    x[0].add_(y)
    return (x * call(square, x)).sum() * 0.01


def views_of_one_node(call):
    left, right = torch.split(torch.tanh(Weights.kept["w1"]), 2)
    y = call(two_rows, left)
    z = call(two_rows, right * y)
    return (y * z * left).sum()


def gradient_of_a_gradient(call):
    (slope,) = torch.autograd.grad(torch.tanh(Weights.kept["w1"]).pow(3).sum(), Weights.kept["w1"], create_graph=True)
    return call(penalty, slope) + slope.sum()


def nested_objects(call):
    x = torch.tanh(Weights.kept["w1"])
    found = call(unpack, Box({"nested": [x, (x[0], x.t())], "whole": torch.arange(3), "again": x}))
    return (found["both"][0] * found["both"][1][0]).sum() + found["again"].sum()


def chain(call):
    return call(onwards, Weights.kept["w1"].cos(), []).sum()


PROGRAMS = [
    sent_and_used, cut, depths, lower_one_later, many_outputs, changed_in_place, leaves_and_relays, chain, hooked,
    changed_after_it_was_sent, views_of_one_node, gradient_of_a_gradient, nested_objects,
]  # fmt: skip


@pytest.mark.parametrize("mode", ["smart", "fast"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_those_of_one_process(workers, program, mode):
    with autograd_dist.context() as context:
        loss = program(there("b"))
        backward(context, [loss], mode=mode)
        found = {}
        for name in Weights.kept:
            parts = [rpc.rpc_sync(to, gradients, (context, name)) for to in ("a", "b")]
            found[name] = sum(part for part in parts if part is not None)
        assert all(leaf.grad is None for leaf in Weights.kept.values())
    local = program(lambda function, *args: function(args[0].clone(), *args[1:]))  # the callee's own
    torch.testing.assert_close(loss, local, rtol=0, atol=1e-12)
    wanted = torch.autograd.grad(local, list(Weights.kept.values()), allow_unused=True)
    for name, gradient in zip(Weights.kept, wanted):
        torch.testing.assert_close(found[name], 0 if gradient is None else gradient, rtol=1e-12, atol=1e-12)


def test_a_route_over_three_workers(workers):
    with autograd_dist.context() as context:
        backward(context, [rpc.rpc_sync("b", onwards, (Weights.kept["w1"], ["c", "a", "b"])).sum()])
        found = get_gradients(context)[Weights.kept["w1"]]

    def locally(x, left):
        y = torch.sin(Weights.kept["w3"] @ x)
        return y * x if not left else locally(y, left - 1) + x

    wanted = torch.autograd.grad(locally(Weights.kept["w1"], 3).sum(), Weights.kept["w1"])[0]
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_references_hold_tensors_of_pytorch(workers):
    x = Weights.kept["w1"]
    with autograd_dist.context() as context:
        there = rpc.remote("b", square, (x * 2,))
        again = rpc.remote("c", remote.here, (there,))
        again.to_here().sum().mul(3)
        backward(context, [again.to_here().sum()])
        found = get_gradients(context)[x]
    torch.testing.assert_close(found, torch.autograd.grad(square(x * 2).sum(), x)[0])


def test_unused_results(workers):
    x = Weights.kept["w1"]
    for mode in ("smart", "fast"):
        with autograd_dist.context() as context:
            unused, y = rpc.rpc_sync("b", two, (x,)), rpc.rpc_sync("c", square, (x,))
            assert unused["y"].requires_grad
            if mode == "smart":
                backward(context, [y.sum()])
                torch.testing.assert_close(get_gradients(context)[x], torch.autograd.grad(square(x).sum(), x)[0])
                assert rpc.rpc_sync("b", gradients, (context, "w3")) is None
            else:
                with pytest.raises(
                    AutogradError, match="no gradient came for 1 tensor sent to worker 'b' from worker 'a'"
                ):
                    backward(context, [y.sum()], mode="fast")


def test_passes_add_up_and_a_graph_is_freed(workers):
    x = Weights.kept["w1"]
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", square, (x,)).sum()
        backward(context, [loss], retain_graph=True)
        backward(context, [loss])
        twice = get_gradients(context)[x]
        torch.testing.assert_close(twice, 2 * torch.autograd.grad(square(x).sum(), x)[0])
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            backward(context, [loss])


def test_contexts_do_not_affect_one_another(workers, thread):
    x = Weights.kept["w1"]
    found = []

    def train():
        with workers[2].use():
            found.append(own_context())

    with autograd_dist.context() as first:
        loss = rpc.rpc_sync("b", square, (x,)).sum()
        other = thread(train)
        backward(first, [loss])
        found.append(get_gradients(first)[x])
        other.join()
    found.sort(key=lambda gradient: gradient.norm().item())
    wanted = torch.autograd.grad(square(x).sum(), x)[0]
    torch.testing.assert_close(found[0], wanted)
    torch.testing.assert_close(found[1], 5 * wanted)


def own_context():
    x = Weights.kept["w1"]
    with autograd_dist.context() as context:
        backward(context, [rpc.rpc_sync("b", square, (x,)).sum() * 5])
        return get_gradients(context)[x]


def test_narrow_types_and_hooks(workers):
    leaf = torch.ones(4, dtype=torch.bfloat16, requires_grad=True)
    leaf.register_hook(lambda gradient: gradient * 2)
    with autograd_dist.context() as context:
        backward(context, [rpc.rpc_sync("b", torch.mul, (leaf * 1, 3.0)).sum()])
        gradient = get_gradients(context)[leaf]
    assert gradient.dtype == torch.bfloat16 and gradient.tolist() == [6, 6, 6, 6]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_complex_numbers(workers):
    for dtype in (torch.complex32, torch.complex64, torch.complex128):
        leaf = torch.ones(4, dtype=dtype, requires_grad=True)
        with autograd_dist.context() as context:
            arrived = rpc.rpc_sync("b", remote.same, (leaf,))
            backward(context, [(arrived.to(torch.complex128) * (2 + 1j)).real.sum()])
            gradient = get_gradients(context)[leaf]
        assert gradient.dtype == dtype and gradient.tolist() == [2 - 1j] * 4


def test_a_kept_gradient_is_the_whole_one(workers):
    kept = []
    for call in (there("b"), lambda function, *args: function(*args)):
        with autograd_dist.context() as context:
            x = torch.tanh(Weights.kept["w1"])
            x.retain_grad()
            loss = (call(square, x) * x.sin()).sum()
            backward(context, [loss])
            kept.append(x.grad)
    torch.testing.assert_close(*kept, rtol=1e-12, atol=1e-12)


def test_a_lookup_table_gets_a_sparse_gradient(workers):
    table = torch.randn(5, 2, requires_grad=True)
    with autograd_dist.context() as context:
        rows = torch.nn.functional.embedding(torch.tensor([1, 1, 3]), table, sparse=True)
        backward(context, [rpc.rpc_sync("b", torch.sin, (rows,)).sum()])
        gradient = get_gradients(context)[table]
    assert gradient.is_sparse
    torch.testing.assert_close(gradient.to_dense()[1], 2 * table.detach()[1].cos())


class TwiceTheSame(torch.autograd.Function):
    """Sum whose backward returns one object as the gradient of both."""

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, gradient):
        sparse = gradient.to_sparse()
        return sparse, sparse


def test_gradients_share_no_memory(workers):
    a, b, c = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with autograd_dist.context() as context:
        backward(context, [rpc.rpc_sync("b", torch.sin, (TwiceTheSame.apply(a, b),)).sum() + c.sum()])
        found = get_gradients(context)
        found[a]._values().zero_()
        found[c].zero_()
    assert found[b].to_dense().all()


def times_sparse(x):
    return torch.sparse.mm(x, Weights.kept["w2"]), x * 2


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_gradients_go_through_sparse_tensors(workers, layout):
    def run(call, leaf):
        product, twice = call(times_sparse, leaf * 3)
        return (product * torch.arange(4.0)).sum() + twice.to_dense().pow(2).sum()

    leaf = torch.eye(4).mul_(torch.arange(1.0, 5)).to_sparse(layout=layout).requires_grad_()
    with autograd_dist.context() as context:
        backward(context, [run(there("b"), leaf)])
        found = get_gradients(context)[leaf], rpc.rpc_sync("b", gradients, (context, "w2"))
    wanted = torch.autograd.grad(run(lambda function, *args: function(*args), leaf), [leaf, Weights.kept["w2"]])
    assert found[0].layout is wanted[0].layout
    for got, expected in zip(found, wanted):
        mask = leaf.to_dense() != 0 if got is found[0] else torch.ones(4, 4)
        torch.testing.assert_close(got.to_dense() * mask, expected.to_dense() * mask, rtol=1e-12, atol=1e-12)


def test_nothing_is_recorded_under_no_grad(workers):
    with autograd_dist.context(), torch.no_grad():
        assert not rpc.rpc_sync("b", remote.same, (Weights.kept["w1"],)).requires_grad


def test_what_a_program_may_not_do(workers):
    x = Weights.kept["w1"]
    with autograd_dist.context() as context:
        y = rpc.rpc_sync("b", square, (x,))
        with pytest.raises(AutogradError, match="continues on another worker"):
            y.sum().backward()
        with pytest.raises(AutogradError, match="root 0 must be a scalar"):
            backward(context, [y])
        with pytest.raises(AutogradError, match="root 0 does not require grad"):
            backward(context, [y.sum().detach()])
        with pytest.raises(RuntimeError, match="roots must be a list of tensors"):
            backward(context, y.sum())
        with pytest.raises(KeyError, match="no backward of this context reached this tensor of shape"):
            get_gradients(context)[x]


def test_a_leaf_that_was_changed_before_the_backward(workers):
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", square, (Weights.kept["w1"].sin(),)).sum()
        with torch.no_grad():
            Weights.kept["w2"].add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            backward(context, [loss])


class Marked(torch.autograd.Function):
    """Operation whose node has an object."""

    @staticmethod
    def forward(ctx, x):
        ctx.token = Token()
        return x * 1


class Token:
    pass


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient today")


def fail(x):
    return Failing.apply(x)


def hook_fails(x):
    def hook(gradient):
        raise LookupError("not this one")

    x.register_hook(hook)
    return x * 2


def test_a_hook_that_raises(workers):
    x = Weights.kept["w1"]
    for call in (there("b"), lambda function, *args: function(*args)):
        with autograd_dist.context() as context:
            loss = call(square, call(hook_fails, x * 1)).sum()
            with pytest.raises(LookupError, match="not this one"):
                backward(context, [loss])
            backward(context, [call(square, x).sum()])  # the context goes on
            torch.testing.assert_close(get_gradients(context)[x], torch.autograd.grad(square(x).sum(), x)[0])


def test_an_error_of_a_backward_comes_to_its_root(workers):
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", fail, (Weights.kept["w1"],)).sum()
        with pytest.raises(ValueError, match="no gradient today"):
            backward(context, [loss])


def test_a_context_that_ends_frees_the_graph(workers, no_collector):
    x = Marked.apply(Weights.kept["w1"])
    token = weakref.ref(x.grad_fn.token)
    with autograd_dist.context():
        loss = rpc.rpc_sync("b", square, (x,)).sum()
        del x
        assert token() is not None
    del loss
    assert token() is None


def test_a_local_backward_does_not_lose_the_gradients_of_a_tensor_that_was_converted(workers):
    """Before, they ended at the part of the graph that is PyTorch's, without an error."""
    leaf = Weights.kept["w1"]
    with autograd_dist.context() as context:
        loss = (convert(leaf * 2, "telegrad") * 3).sum()
        for _ in "before", "after":
            with pytest.raises(AutogradError, match=r"goes on in PyTorch's; call autograd_dist.backward"):
                loss.backward(retain_graph=True)
            backward(context, [loss], retain_graph=True)
        assert (get_gradients(context)[leaf] == 12).all()
