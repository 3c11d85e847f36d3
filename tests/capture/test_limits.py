"""Limits of recording: such calls run eagerly, and a warning says why, once."""

import random

import numpy as np
import pytest
import telegrad as tg
from helpers.compiled import array
from telegrad import nn, optim


def _tensor(*shape, seed=0, **options):
    return tg.tensor(array(*shape, seed=seed), **options)


def _counted():
    count = {"calls": 0}

    def run(x):
        count["calls"] += 1
        return x * count["calls"]

    return run, lambda: [count]


def _collected():
    seen = []

    def run(x):
        seen.append(len(seen))
        return x * 2

    return run, lambda: [seen]


def _attribute():
    class Module(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2

    module = Module()
    module.calls = 0
    return module, lambda: [module.calls]


def _hidden():
    state = [_tensor(3)]

    def run(x):
        state[0] = state[0] * x
        return state[0]

    return run, lambda: state


def _hooked():
    weight = _tensor(3, requires_grad=True)
    weight.register_hook(lambda grad: grad * 2)
    return lambda x: (weight * x).sum().backward(), lambda: [weight]


class _Square(tg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


def _custom():
    weight = _tensor(3, requires_grad=True)
    return lambda x: _Square.apply(weight * x).sum().backward(), lambda: [weight]


def _outer_graph():
    weight = _tensor(3, requires_grad=True)
    twice = weight * 2
    return lambda x: (twice * x).sum().backward(retain_graph=True), lambda: [weight]


def _lbfgs():
    weight = _tensor(3, requires_grad=True)
    optimizer = optim.LBFGS([weight])

    def run(x):
        def closure():
            optimizer.zero_grad()
            loss = ((weight - x) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)

    return run, lambda: [weight.detach()]


def _drawn():
    numbers = np.random.default_rng(0)
    return lambda x: x * 2 if numbers.random() < 2 else x, lambda: [str(numbers.bit_generator.state)]


async def _later(x):
    return x * 2


class _Box:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Box) and bool((self.value == other.value).all())


def _boxed_case():
    return lambda x: _Box(x * 2), list


def _plain(function):
    return lambda: (function, list)


CASES = {
    "item": (_plain(lambda x: x * 2 if x.sum().item() > 1.5 else x), "item() reads elements"),
    "numpy": (_plain(lambda x: x.numpy().sum()), "numpy() reads elements"),
    "tolist": (_plain(lambda x: x * sum(x.tolist())), "tolist() reads elements"),
    "format": (_plain(lambda x: (x, f"{x.sum()}")), "reads elements"),
    "array": (_plain(lambda x: x + np.ones(3, np.float32)), "NumPy array"),
    "print": (_plain(lambda x: (print(end=""), x)[1]), "print()"),
    "random": (_plain(lambda x: x * 2 if random.Random(1).random() < 2 else x), "Python's random numbers"),
    "numpy.random": (_plain(lambda x: x * float(np.random.random_sample() < 2)), "random numbers of NumPy"),
    "generator of NumPy": (_drawn, "random numbers of NumPy"),
    "counter": (_counted, "changes what it reads"),
    "list": (_collected, "changes what it reads"),
    "attribute": (_attribute, "changes what it reads"),
    "hidden state": (_hidden, "changes what it reads"),
    "hook": (_hooked, "a hook is registered"),
    "custom function": (_custom, "custom function"),
    "graph from outside": (_outer_graph, "a graph that was made before"),
    "closure": (_lbfgs, "reads elements"),
    "object": (_plain(lambda x: [x * 2, {1, 2}]), "class set"),
    "box": (_boxed_case, "may hold something of this call"),
    "two results": (_plain(lambda x: (x.requires_grad_() * 2, x + 1)), "requires_grad"),
    "gradients": (_plain(lambda x: tg.autograd.grad((x.detach() * 2).sum(), x, allow_unused=True)), "autograd.grad()"),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_that_are_not_recorded_run_eagerly(sides, name):
    make, reason = CASES[name]

    def made():
        random.seed(0)
        np.random.seed(0)
        return *make(), lambda call: [_tensor(3, seed=call)]

    if name == "gradients":
        with pytest.raises(tg.errors.AutogradError):
            sides.run(made)
        return
    sides.run(made)
    assert sides.replays() == 0
    (said,) = sides.reasons()
    assert reason in said and "runs eagerly" in said


def test_the_reason_names_the_line(sides):
    sides.run(lambda: (lambda x: x * x.sum().item(), list, lambda call: [_tensor(3, seed=call)]))
    assert "test_limits.py:" in sides.reasons()[0]
    assert "test_limits.py:" in sides.compiled.explain()


def test_tensors_made_anew_by_other_code(sides):
    def run(x):
        return x + tg.Tensor(np.ones(3, np.float32))

    sides.run(lambda: (run, list, lambda call: [_tensor(3)]))
    assert sides.replays() == 0 and "each call did something else" in sides.reasons()[0]


def test_coroutines_are_not_recorded():
    compiled = tg.compile(_later)
    with pytest.warns(UserWarning, match="class coroutine"):
        for call in range(4):
            with pytest.raises(StopIteration) as ended:
                compiled(_tensor(3, seed=call)).send(None)
            assert ended.value.value.tolist() == (_tensor(3, seed=call) * 2).tolist()
