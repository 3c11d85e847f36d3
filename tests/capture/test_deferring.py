"""Large gradients of a captured step are made at the end of its backward pass, with the bits and the order of eager calls."""

import tracemalloc

import pytest
import telegrad as tg
from helpers.compiled import array
from telegrad.capture.limits import LIMITS

WIDE = 4 * 256 * 2048  # bytes of the gradient of the last layer


def peak(function):
    """Return the most bytes of arrays that a call needs at one time."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def activations_then_a_wide_layer(clear):
    """Return a step: activations of 1 MiB each, then a layer with more parameters, which gets its gradient first."""
    tg.manual_seed(1)
    scale = tg.nn.Parameter(tg.ones(256))
    last = tg.nn.Linear(256, 2048)
    optimizer = tg.optim.SGD([scale, *last.parameters()], lr=0.1)
    x = tg.from_numpy(array(16, 64, 256))

    def step():
        if clear:
            optimizer.zero_grad()
        y = x
        for _ in range(4):
            y = (y * scale).tanh()
        loss = last(y.sum(1)).square().mean()
        loss.backward()
        return loss.detach()

    return step, [scale, *last.parameters()]


def gradients_of(parameters):
    """Return the gradients, and remove them."""
    found = [each.grad for each in parameters]
    for each in parameters:
        each.grad = None
    return found


@pytest.mark.parametrize("clear", [True, False])
def test_a_gradient_waits_until_activations_are_dropped(clear, monkeypatch):
    def most():
        step, parameters = activations_then_a_wide_layer(clear)
        compiled = tg.compile(step)
        for _ in range(3):
            result = compiled()
            gradients = gradients_of(parameters)
        assert tg.equal(step(), result)
        assert all(tg.equal(*pair) for pair in zip(gradients, gradients_of(parameters)))
        return peak(compiled)

    late = most()
    monkeypatch.setattr(LIMITS, "late", 1 << 40)
    assert late < most() - WIDE / 2


@pytest.fixture
def every_gradient(monkeypatch):
    """Let gradients of any size wait."""
    monkeypatch.setattr(LIMITS, "large", 1)
    monkeypatch.setattr(LIMITS, "late", 0)


def twice(weight, x):
    """Add a second gradient to one that was read: its array changes in place."""
    weight.grad = None
    (x @ weight).tanh().sum().backward()
    first = weight.grad
    before = first * 2
    (x @ weight).exp().sum().backward()
    return before, first + 1


def another(weight, x):
    """Use the gradient of one call as an argument of the next."""
    y = x @ weight
    y.sum().backward()
    return y * 2 + x


def calls(function, compiled):
    """Return what four calls return at last, and the gradient that they leave; the first finds one, an operand."""
    weight = tg.nn.Parameter(tg.from_numpy(array(8, 8)) / 8)
    x = weight.grad = tg.from_numpy(array(8, 8))
    run = tg.compile(function) if compiled else function
    for _ in range(4):
        found = run(weight, x)
    return [*(found if isinstance(found, tuple) else [found]), weight.grad]


@pytest.mark.parametrize("function", [twice, another])
def test_gradients_that_change_arrays_stay_where_they_are(function, every_gradient):
    eager, replayed = calls(function, False), calls(function, True)
    assert all(tg.equal(*pair) for pair in zip(eager, replayed, strict=True))
