"""The two errors of saved values, whole: freed by an earlier pass, and modified in place; and what to do about each."""

from __future__ import annotations

import re

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn, optim
from telegrad.base.errors import AutogradError


class Cube(tg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x**3
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, _ = ctx.saved_tensors
        return gradient * 3 * x * x


def gru(x):
    tg.manual_seed(1)
    return nn.GRU(2, 3)(x.reshape(1, 1, 2))[0]


GRAPHS = {
    "ExpBackward": tg.exp,
    "MulBackward": lambda x: x * x,
    "CubeBackward": Cube.apply,
    "LinalgQrBackward": lambda x: tg.linalg.qr(x * x.reshape(2, 1) + tg.eye(2)).Q,
    "GruBackward": gru,
    "LinalgEighBackward": lambda x: tg.linalg.eigh(x * x.reshape(2, 1))[1],
    "ConvolutionBackward": lambda x: nn.functional.conv1d(x.reshape(1, 1, 2), x.reshape(1, 1, 2)),
}
SAVE_NOTHING = {
    "AddBackward": lambda x: x + x,
    "ReshapeBackward": lambda x: x.reshape(2, 1),
    "SumBackward": tg.sum,
    "SortBackward": lambda x: x.sort().values,
}
FREED = "{name} needs values that an earlier backward pass freed.*retain_graph=True.*"
FREED_OF_A_FUNCTION = (
    r"{name} has freed its saved tensors in an earlier backward pass; pass retain_graph=True to that one to go over the "
    r"graph again"
)


def leaf():
    return tg.tensor([0.5, 2.0], requires_grad=True)


@pytest.mark.parametrize("second", ["backward", "grad", "create_graph", "through another output"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_second_pass(name, second):
    x = leaf()
    y = GRAPHS[name](x)
    first, other = y.sum(), y.mean()
    first.backward()
    expected = (FREED_OF_A_FUNCTION if name == "CubeBackward" else FREED).format(name=name)
    with pytest.raises(AutogradError, match=f"^{expected}$"):
        if second == "through another output":
            other.backward()
        elif second == "backward":
            first.backward()
        else:
            tg.autograd.grad(first, x, create_graph=second == "create_graph")


@pytest.mark.parametrize("name", [*GRAPHS, *SAVE_NOTHING])
def test_the_way_out_of_a_second_pass(name):
    x = leaf()
    y = {**GRAPHS, **SAVE_NOTHING}[name](x).sum()
    y.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    tg.autograd.grad(y, x, retain_graph=True)
    tg.autograd.grad(y, x, create_graph=True)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * once, rtol=1e-6)


@pytest.mark.parametrize("name", SAVE_NOTHING)
def test_what_saved_nothing_can_be_gone_over_again(name):
    x = leaf()
    y = SAVE_NOTHING[name](x)
    for _ in range(2):
        y.backward(tg.ones_like(y))
    assert x.grad is not None


def test_a_pass_that_failed_frees_what_it_reached_and_says_so():
    x = leaf()
    middle = x.exp()
    middle.register_hook(lambda gradient: 1 / 0)
    y = (middle * middle).sum()
    with pytest.raises(ZeroDivisionError):
        y.backward()
    with pytest.raises(AutogradError, match=FREED.format(name="MulBackward")):
        y.backward()


# -- modified in place


def add_one(b):
    b.add_(1)


def through_a_view(b):
    b[0].mul_(2)


def through_what_it_is_a_view_of(b):
    b._base.add_(1)


def assign(b):
    b[1] = 5.0


def under_no_grad(b):
    with tg.no_grad():
        b.zero_()


def through_detach(b):
    b.detach().add_(1)


def by_out(b):
    with tg.no_grad():
        tg.exp(tg.zeros(2), out=b.detach())


def by_hand(b):
    tg.autograd.graph.increment_version(b)


CHANGES = [
    add_one,
    through_a_view,
    through_what_it_is_a_view_of,
    assign,
    under_no_grad,
    through_detach,
    by_out,
    by_hand,
]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_an_input_was_modified(change, create_graph):
    x = leaf()
    b = (x * 1).view(2)
    y = b.log().sum()
    change(b)
    with pytest.raises(AutogradError) as caught:
        y.backward(create_graph=create_graph)
    assert str(caught.value) == (
        "LogBackward needs an input (shape (2,), float32) as it was at version 0, but it was modified in place and is at "
        "version 1; use the out-of-place form of the operation that changed it, or clone() before you change it"
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("ExpBackward", r"its result \(shape \(2,\), float32\) as it was at version 0"),
        ("LinalgQrBackward", r"its result \(shape \(2, 2\), float32\) as it was at version 0"),
        ("GruBackward", r"its result \(shape \(1, 1, 3\), float32\) as it was at version 0"),
        (
            "CubeBackward",
            r"saved a tensor of shape \(2,\) at version 0, and it was modified in place since \(version 1\)",
        ),
    ],
)
def test_a_result_was_modified(name, what):
    y = GRAPHS[name](leaf())
    z = (y * 1).sum()
    with tg.no_grad():
        y.add_(1)
    with pytest.raises(AutogradError, match=f"^{name} .*{what}.*out-of-place form.* clone"):
        z.backward()


def test_clone_is_the_way_out():
    x = leaf()
    b = x * 1
    y = b.clone().log().sum()
    b.add_(1)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 / x.detach().numpy())


def test_a_step_of_the_optimizer_between_forward_and_backward():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loss = model(tg.ones(4, 2)).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(AutogradError, match="modified in place"):
        loss.backward()


def test_what_is_not_needed_may_change():
    x = leaf()
    b = x * 1
    y, factor = (b + 1).sum() + b.sum(), tg.ones(2)
    z = (b * factor).sum()  # needs the factor only
    b.add_(1)
    (y + z).backward()
    assert x.grad.tolist() == [3, 3]
    w = (x * factor).sum()
    factor.mul_(2)
    with pytest.raises(AutogradError, match=re.escape("MulBackward needs an input (shape (2,), float32)")):
        w.backward()


def test_saved_tensors_of_a_node_are_checked_as_well():
    x = leaf()
    b = x * 1
    node = Cube.apply(b).grad_fn
    b.add_(1)
    with pytest.raises(AutogradError, match="died with the outputs"):
        ctx = node.ctx
        del node
        ctx.saved_tensors  # noqa: B018
    y = Cube.apply(b)
    b.add_(1)
    with pytest.raises(AutogradError, match="modified in place since"):
        y.grad_fn.saved_tensors  # noqa: B018
