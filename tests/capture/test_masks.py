"""Results whose shape depends on elements: replayed where they have the recorded shape, and never broadcast to it."""

import pytest
import telegrad as tg

CASES = {
    "mask": lambda x: x[x > 0] * 2 + 1,
    "masked_select": lambda x: tg.masked_select(x, x > 0) * 2 + 1,
    "nonzero": lambda x: tg.nonzero(x > 0) * 2 + 1,
    "unique": lambda x: tg.unique(x * tg.arange(8)) * 2 + 1,
    "repeat_interleave": lambda x: tg.repeat_interleave(x, (x > 0).long()) * 2 + 1,
    "where": lambda x: tg.where(x > 0)[0] * 2 + 1,
    "bincount": lambda x: tg.bincount((x > 0).long() * 3) * 2 + 1,
}
POSITIVE = [4, 4, 4, 1, 3, 4, 1, 0, 4]


def _x(call):
    count = POSITIVE[call]
    return [tg.tensor([1.0 + call] * count + [-1.0] * (8 - count))]


@pytest.mark.parametrize("name", CASES)
def test_results_have_the_shape_of_eager_calls(sides, name):
    sides.run(lambda: (CASES[name], list, _x), calls=len(POSITIVE))
    assert sides.reasons() == []
    assert sides.replays() >= 1


@pytest.mark.parametrize("name", ["mask", "masked_select"])
def test_gradients_of_results_of_other_shapes(sides, name):
    weight = tg.ones(8, requires_grad=True)

    def make():
        weight.grad = None

        def run(x):
            return CASES[name](x * weight)

        def arguments(call):
            return _x(call)

        return run, lambda: [weight.grad], arguments

    sides.run(make, calls=len(POSITIVE))
    for call in range(len(POSITIVE)):
        grads = []
        for function in (sides.compiled, sides.compiled.__wrapped__):
            weight.grad = None
            function(*_x(call)).square().sum().backward()
            grads.append(weight.grad.tolist())
        assert grads[0] == grads[1]


def test_a_step_with_a_mask_runs_eagerly(sides):
    def make():
        weight = tg.ones(8, requires_grad=True)

        def run(x):
            weight.grad = None
            product = x * weight
            (product[x > 0] * 2).sum().backward()

        return run, lambda: [weight.grad], _x

    sides.run(make, calls=len(POSITIVE))
    assert sides.replays() == 0
    assert "depends on elements" in sides.reasons()[0]


def test_numbers_of_repetitions_are_no_elements(sides):
    weight = tg.ones(8, requires_grad=True)

    def run(x):
        weight.grad = None
        tg.repeat_interleave(x * weight, 2).sum().backward()

    sides.run(lambda: (run, lambda: [weight.grad], _x), calls=len(POSITIVE))
    assert sides.reasons() == []
    assert sides.replays() == len(POSITIVE) - 2
