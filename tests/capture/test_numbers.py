"""``item()`` in a compiled function: recorded where the number can only leave the function, else a reason for eager calls."""

import math

import pytest
import telegrad as tg
from helpers.compiled import array

WEIGHT = tg.tensor(array(3, seed=9))


def _returned(x):
    loss = (x * WEIGHT).sum()
    return loss.item()


def _at_once(x):
    return (x * WEIGHT).sum().item()


def _in_structures(x):
    total, mean = (x * WEIGHT).sum(), x.mean()
    first = total.item()
    return {"total": first, "both": [first, mean.item()], "one": 1.0}, (total.detach(), mean.item())


def _before_a_change(x):
    y = x * 2
    before = y[0].item()
    return before, y.detach()


def _of_an_argument(x):
    return x[0].item(), 2.5


class Trainer:
    def __init__(self):
        self.weight = tg.tensor(array(3), requires_grad=True)
        self.optimizer = tg.optim.SGD([self.weight], lr=0.1)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = ((self.weight - x) ** 2).sum()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def _argument(call):
    return [tg.tensor(array(3, seed=call))]


LEAVING = [_returned, _at_once, _in_structures, _before_a_change, _of_an_argument]


@pytest.mark.parametrize("function", LEAVING, ids=lambda function: function.__name__)
def test_numbers_that_are_returned_are_recorded(sides, function):
    sides.run(lambda: (function, list, _argument))
    assert sides.reasons() == []
    assert sides.replays() == 4


def test_a_step_that_returns_its_loss_as_a_number(sides):
    def make():
        trainer = Trainer()
        return trainer.step, lambda: [trainer.weight.detach()], _argument

    sides.run(make)
    assert sides.reasons() == []
    assert sides.replays() == 4
    assert type(sides.compiled(tg.ones(3))) is float


def test_a_differentiable_result_beside_a_number():
    weight = tg.tensor(array(3), requires_grad=True)
    logs = []
    for wrap in (tg.compile, lambda function: function):
        weight.grad = None
        run = wrap(lambda x: ((weight * x).sum(), (weight * x).sum().item()))
        log = []
        for call in range(5):
            loss, number = run(*_argument(call))
            loss.backward()
            log.append((number, weight.grad.tolist()))
        logs.append(log)
    assert logs[0] == logs[1]


def _branch(x):
    total = x.sum().item()
    return x * 2 if total > 1.5 else x


def _added(x):
    return x.sum().item() + 1


def _called(x):
    return math.isnan(x.sum().item())


def _text(x):
    return x, f"{x.sum().item():.1f}"


def _percent(x):
    return x, "%.1f" % x.sum().item()  # noqa: UP031


def _method(x):
    total = x.sum().item()
    return x, total.hex()


def _attribute(x):
    total = x.sum().item()
    return x, total.real


def _key(x):
    return {x.sum().item(): x}


def _used_again(x):
    total = x.sum().item()
    y = x * total
    return y, total


def _in_a_loop(x):
    found = []
    for each in x:
        found.append(each.item())  # noqa: PERF401
    return found


def _guarded(x):
    try:
        return x.sum().item()
    finally:
        x * 2


def _nested(x):
    def inner():
        return x.sum().item()

    return x if inner() > 1 else x * 2


USED = [
    *(_branch, _added, _called, _text, _percent, _method, _attribute, _key, _used_again, _in_a_loop),
    *(_guarded, _nested),
]


@pytest.mark.parametrize("function", USED, ids=lambda function: function.__name__)
def test_numbers_that_are_used_are_a_reason(sides, function):
    sides.run(lambda: (function, list, lambda call: [tg.tensor(array(3, seed=call))]))
    assert sides.replays() == 0
    assert "elements" in sides.reasons()[0] or "key" in sides.reasons()[0]


def test_a_number_of_a_recursive_call_may_be_used(sides):
    def deeper(x, depth=1):
        if not depth:
            return x.sum().item()
        return deeper(x * 2, depth - 1) + 1

    # The first calls have the same elements, so that only the code tells them from calls that always return this number.
    sides.run(lambda: (deeper, list, lambda call: [tg.tensor(array(3, seed=call // 4))]), 8)
    assert sides.replays() > 0


def test_a_plan_that_reads_numbers_is_neither_saved_nor_exported(tmp_path):
    run = tg.compile(_returned)
    for call in range(3):
        run(*_argument(call))
    (plan,) = run.plans()
    with pytest.raises(tg.errors.ArgumentTypeError, match=r"it returns a number that item\(\) reads"):
        plan.save(tmp_path / "plan")
    with pytest.raises(tg.errors.ArgumentTypeError, match="ONNX"):
        plan.to_onnx(tmp_path / "plan.onnx")
