"""Gradients from outside in any layout: those that a replay computes have the bits of the eager ones."""

import io

import pytest
import telegrad as tg

FUNCTIONS = [
    lambda x, a, w: (a / x.t()) * w.sum(),
    lambda x, a, w: (a * x) * w.sum(),
    lambda x, a, w: (a * x.t()).sin() / w.sum(),
    lambda x, a, w: ((a * x.t()).sin() * w).t(),
]
GRADIENTS = {
    "expanded": lambda y: y.sum(),
    "one dimension expanded": lambda y: y.sum(0).square().sum(),
    "the other expanded": lambda y: y.sum(1).square().sum(),
    "in order": lambda y: (y * tg.arange(float(y.numel())).reshape(y.shape)).sum(),
    "transposed": lambda y: (y * (tg.arange(float(y.numel())).reshape(y.shape[::-1]) / 7).t()).sum(),
}


def _side(function):
    tg.manual_seed(0)
    a, w = tg.randn(1, 1, requires_grad=True), tg.randn(40, 30, requires_grad=True)
    return a, w, lambda x: function(x, a, w)


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_of_any_layout(function, gradient):
    (a, w, eager), (b, v, other) = _side(function), _side(function)
    replayed = tg.compile(other)
    for _ in range(5):
        x = tg.randn(30, 40)
        GRADIENTS[gradient](eager(x)).backward()
        GRADIENTS[gradient](replayed(x)).backward()
        assert a.grad.equal(b.grad) and w.grad.equal(v.grad)
        a.grad = w.grad = b.grad = v.grad = None
    assert replayed.plans()[0].replays == 3


def test_a_loaded_plan_takes_them_too():
    _, w, function = _side(FUNCTIONS[0])
    compiled, x = tg.compile(function), tg.randn(30, 40)
    for _ in range(3):
        compiled(x)
    file = io.BytesIO()
    compiled.plans()[0].save(file)
    file.seek(0)
    plan = tg.load_plan(file)
    plan(x).sum().backward()
    function(x).sum().backward()
    assert next(each.grad for each in plan.tensors if each.shape == w.shape).equal(w.grad)
