"""Graphs through calls: every way to call, and every kind of argument and result, as in one process."""

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import weights
from telegrad import autograd_dist, nn, rpc

TOLERANCE = 1e-12
pytestmark = pytest.mark.usefixtures("contexts_end")


# -- ways to call: each gives a tensor


def product(x, y):
    return tg.tanh(x * y)


async def product_later(x, y):
    return await rpc.rpc_async("c", product, (x, y))


@rpc.functions.async_execution
def product_promised(x, y):
    return rpc.rpc_async("c", product, (x, y)).then(lambda done: done.value() * 1.0)


def product_of_references(x, y):
    return product(x.to_here(), y.to_here())


def parts_of_product(x, y):
    for one, other in zip(x.split(1), y.split(1)):
        yield product(one, other)


async def later_parts_of_product(x, y):
    for one, other in zip(x.split(1), y.split(1)):
        yield await rpc.rpc_async("c", product, (one, other))


class Multiplier:
    def __init__(self, y=None):
        self.y = y

    def product(self, x, y):
        return product(x, y)


def through_proxy(kind):
    def call(x, y):
        with rpc.remote("b", Multiplier) as there:
            result = getattr(there, kind)().product(x, y)
            return {"rpc_sync": lambda: result, "rpc_async": lambda: result.wait(), "remote": lambda: result.to_here()}[
                kind
            ]()

    return call


class Product(nn.Module):
    def forward(self, x, y):
        return product(x, y)


def recursive(x, y, depth):
    return product(x, y) if not depth else rpc.rpc_sync("abc"[depth % 3], recursive, (x, y * 1.5, depth - 1)) + x


CALLS = {
    "rpc_sync": lambda x, y: rpc.rpc_sync("b", product, (x, y)),
    "rpc_async": lambda x, y: rpc.rpc_async("b", product, (x, y)).wait(),
    "keywords": lambda x, y: rpc.rpc_sync("b", product, kwargs={"y": y, "x": x}),
    "remote": lambda x, y: rpc.remote("b", product, (x, y)).to_here(),
    "to itself": lambda x, y: rpc.rpc_sync("a", product, (x, y)),
    "remote to itself": lambda x, y: rpc.remote("a", product, (x, y)).to_here(),
    "async function": lambda x, y: rpc.rpc_sync("b", product_later, (x, y)),
    "async_execution": lambda x, y: rpc.rpc_sync("b", product_promised, (x, y)),
    "references": lambda x, y: rpc.rpc_sync("b", product_of_references, (tg.RRef(x), tg.RRef(y))),
    "lambda": lambda x, y: rpc.rpc_sync("b", lambda value: product(value, y), (x,)),
    "proxy.rpc_sync": through_proxy("rpc_sync"),
    "proxy.rpc_async": through_proxy("rpc_async"),
    "proxy.remote": through_proxy("remote"),
    "RemoteModule": lambda x, y: tg.RemoteModule("b", Product)(x, y),
    "RemoteModule's forward_async": lambda x, y: tg.RemoteModule("b", Product).forward_async(x, y).wait(),
    "stream": lambda x, y: tg.cat(list(rpc.stream("b", parts_of_product, (x, y)))),
    "stream of an async generator": lambda x, y: tg.cat(list(rpc.stream("b", later_parts_of_product, (x, y)))),
    "recursive": lambda x, y: rpc.rpc_sync("b", recursive, (x, y, 5)),
}


@pytest.mark.parametrize("mode", ["smart", "fast"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_way_to_call(workers, call, mode):
    x, y = weights(1, 4), weights(2, 4)
    with autograd_dist.context() as context:
        result = call(x, y)
        autograd_dist.backward(context, [(result * result).sum()], mode=mode)
        found = autograd_dist.get_gradients(context)
        found = [found[leaf].numpy() for leaf in (x, y)]
    result = recursive_here(x, y, 5) if call is CALLS["recursive"] else product(x, y)
    (result * result).sum().backward()
    for leaf, gradient in zip((x, y), found):
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=0, atol=TOLERANCE)


def test_a_stream_that_is_taken_in_part(workers):
    x, y = weights(1, 4), weights(2, 4)
    with autograd_dist.context() as context:
        with rpc.stream("b", parts_of_product, (x, y)) as parts:
            taken = [next(parts), next(parts)]
        autograd_dist.backward(context, [tg.cat(taken).sum()])
        found = autograd_dist.get_gradients(context)[x]
    product(x[:2], y[:2]).sum().backward()
    np.testing.assert_allclose(found, x.grad, rtol=0, atol=TOLERANCE)


def recursive_here(x, y, depth):
    return product(x, y) if not depth else recursive_here(x, y * 1.5, depth - 1) + x


# -- arguments and results: each function returns a tensor, or several values of which it says what to add up


class Box:
    def __init__(self, tensor):
        self.tensor = tensor
        self.more = {"half": [tensor * 0.5]}


def unbox(box):
    return Box(box.tensor * 2 + box.more["half"][0])


def several(x):
    return x * 2, x.detach() > 0, x.argmax(), "text", {"square": [x * x], "constant": tg.ones(2)}


def in_place(x):
    y = x * 1
    y.mul_(3.0)
    y[:1].add_(x[1:2])
    return y


def twice(x):
    y = x * 2
    return y, y


def integers(x):
    return x.detach().long(), x


def view(x):
    return x.reshape(2, 2).t()[1:]


def only_a_part(x):
    return x * 3, x * 5, x.exp()


def nothing_of_it(x):
    return tg.ones(2)


FUNCTIONS = {
    "object": (unbox, Box, lambda r: r.tensor + r.more["half"][0]),
    "several": (several, None, lambda r: r[0] * r[4]["square"][0]),
    "used in part": (several, None, lambda r: r[4]["square"][0]),
    "in place": (in_place, None, None),
    "in place on the result": (tg.sin, None, lambda r: r.mul_(2.0)),
    "one tensor twice": (twice, None, lambda r: r[0] * r[1]),
    "integers beside": (integers, None, lambda r: r[1] * r[0].double()),
    "view": (view, None, None),
    "of three one": (only_a_part, None, lambda r: r[1]),
    "list": (lambda parts: parts[0] * parts[1]["x"], lambda x: [x, {"x": x * 2}], None),
    "detached": (tg.mul, lambda x: (x.detach(), x), None),
    "a view of a leaf": (tg.sin, lambda x: x[1:], None),
    "a scalar": (tg.exp, lambda x: x.sum(), None),
}


@pytest.mark.parametrize("worker", ["a", "b"])
@pytest.mark.parametrize(("function", "pack", "use"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_kind_of_argument_and_result(workers, worker, function, pack, use):
    x = weights(3, 4)

    def loss(call):
        packed = pack(x) if pack else x
        result = call(*packed) if isinstance(packed, tuple) else call(packed)
        return (use(result) if use else result).sum()

    with autograd_dist.context() as context:
        autograd_dist.backward(context, [loss(lambda *args: rpc.rpc_sync(worker, function, args))])
        found = autograd_dist.get_gradients(context)[x].numpy()
    loss(function).backward()
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=0, atol=TOLERANCE)


def test_arguments_are_captured_when_the_call_is_made(workers):
    x = weights(1, 3)
    with autograd_dist.context() as context:
        y = x * 1
        result = rpc.rpc_async("b", product, (y, y))
        y.mul_(10.0)
        autograd_dist.backward(context, [result.wait().sum() + y.sum()])
        found = autograd_dist.get_gradients(context)[x].numpy()
    (product(x, x).sum() + 10 * x.sum()).backward()
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=0, atol=TOLERANCE)


def test_modules_and_their_parameters(workers):
    x, module = weights(1, 2, 3), nn.Linear(3, 2).double()
    with autograd_dist.context() as context:
        result = rpc.rpc_sync("b", nn.Module.__call__, (module, x))
        autograd_dist.backward(context, [result.sum()])
        found = autograd_dist.get_gradients(context)
        found = [found[leaf].numpy() for leaf in (x, module.weight, module.bias)]
    module(x).sum().backward()
    for leaf, gradient in zip((x, module.weight, module.bias), found):
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=0, atol=TOLERANCE)


# -- results that nothing needs


@pytest.mark.parametrize("function", [product, nothing_of_it, twice, several])
def test_results_that_are_not_used_are_no_error(workers, function):
    x, args = weights(1, 4), 2 if function is product else 1
    with autograd_dist.context() as context:
        rpc.rpc_sync("b", function, (x,) * args)
        autograd_dist.backward(context, [rpc.rpc_sync("c", tg.mul, (x, 2.0)).sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [2.0] * 4


def pass_on_and_drop(x):
    """Use the argument in a result that is returned, and in one that is not."""
    rpc.rpc_sync("c", product, (x, x))
    return x * 3.0


def test_results_that_are_not_used_on_the_way_are_no_error(workers):
    x = weights(1, 4)
    with autograd_dist.context() as context:
        unused = rpc.rpc_sync("b", pass_on_and_drop, (x,))
        rpc.rpc_sync("c", tg.exp, (unused,))
        autograd_dist.backward(context, [rpc.rpc_sync("b", pass_on_and_drop, (x,)).sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [3.0] * 4


def test_losses_of_one_context_one_after_another(workers):
    """The second backward uses nodes that the first left out."""
    x = weights(1, 4)
    with autograd_dist.context() as context:
        first, second = (rpc.rpc_sync(worker, tg.mul, (x, 2.0)).sum() for worker in "bc")
        for loss in (first, second):
            autograd_dist.backward(context, [loss])
        assert autograd_dist.get_gradients(context)[x].tolist() == [4.0] * 4


def backward_of(context, x):
    autograd_dist.backward(context, [rpc.rpc_sync("c", tg.mul, (x, 2.0)).sum()])


def test_backwards_from_several_workers_at_once(workers):
    x = weights(1, 4)
    with autograd_dist.context() as context:
        calls = [rpc.rpc_async(worker, backward_of, (context, x)) for worker in "abc"]
        for call in calls:
            call.wait()
        assert autograd_dist.get_gradients(context)[x].tolist() == [6.0] * 4
