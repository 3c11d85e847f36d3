"""Functions that look at elements: plans branch on the values, and a value without a plan changes nothing twice."""

import pytest
import telegrad as tg
from helpers.compiled import array, bits
from telegrad import nn, optim
from telegrad.capture import branches, entries

FEW = 3  # different arguments, so that each way is taken again


def _few(call):
    return [tg.tensor(array(3, seed=call % FEW) - 0.5)]


def _truth(x):
    return x * 2 if x.sum() > 0 else x - 1


def _several(x):
    positive, large = bool(x[0] > 0), bool(x.abs().amax() > 0.4)
    return x.tanh() if positive and large else x * 0.5 if large else x.clone()


def _until_small(x):
    rounds = 0
    while x.abs().sum() > 0.2:
        x, rounds = x * x.abs(), rounds + 1
    return x, rounds


def _until_close(x):
    former, x = x, x * 0.5
    while not tg.allclose(former, x, atol=0.05):
        former, x = x, x.tanh() * 0.5
    return x


def _integer(x):
    count = int((x > 0).sum())
    return x[:count] * count, count


def _list(x):
    for sign in x.sign().tolist():
        x = x + sign
    return x


def _returned(x):
    count = (x > 0).sum().item()
    return count, x * 2


def _number(x):
    return x * x.mean().round().item()


def _in_a_helper(x):
    def positive(y):
        return y.sum().item() > 0

    return [x * 2] if (x.sum() > 0) == positive(x.sign()) else [x]


def _inner_results_leave(x):
    y, z = x * 2, x.exp()
    z[0] = 5.0
    return (y, z[1:]) if y.sum() > 0 else (z, y.flip(0), x)


WAYS = [
    *(_truth, _several, _until_small, _until_close, _integer, _list, _returned, _number, _in_a_helper),
    _inner_results_leave,
]


@pytest.mark.parametrize("function", WAYS, ids=lambda function: function.__name__)
def test_ways_that_are_taken_again_are_replayed(sides, function):
    sides.run(lambda: (function, list, _few), 6 * FEW)
    assert sides.reasons() == []
    assert sides.replays() >= 4 * FEW


def test_results_of_each_part_belong_to_the_caller():
    run = tg.compile(_inner_results_leave)
    results = [run(*_few(call)) for call in range(4 * FEW)]
    before = bits(results)
    for call in range(2 * FEW):
        for each in run(*_few(call)):
            each.fill_(9.0)
    assert bits(results) == before


def test_results_are_differentiated_outside():
    logs = []
    for wrap in (tg.compile, lambda function: function):
        weight = tg.tensor(array(3), requires_grad=True)

        @wrap
        def loss(x, weight=weight):
            hidden = (weight * x).tanh()
            return (hidden * 2 if hidden.sum() > 0 else hidden + weight).sum(), hidden

        for call in range(6 * FEW):
            total, hidden = loss(*_few(call))
            (total if call % 2 else total * 2 + hidden.sum()).backward()
            logs.append(bits([total.detach(), weight]))
    assert logs[: 6 * FEW] == logs[6 * FEW :]
    assert total.grad_fn is not None


class Trainer:
    """A model with dropout and running statistics, whose step looks at its loss."""

    def __init__(self, look):
        self.model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.05)
        self.look = look

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.model(x).square().mean()
        if self.look == "before" and loss > 0.5:
            loss = loss * 0.5
        loss.backward()
        if self.look == "between" and loss > 0.5:
            return loss.detach()
        self.optimizer.step()
        if self.look == "after" and loss > 0.5:
            return loss.detach() * 2
        return loss.detach()

    def clipped(self, x):
        self.optimizer.zero_grad(set_to_none=self.look != "zeros")
        loss = self.model(x).square().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        if norm > 0.7:
            self.model[0].weight.grad.mul_(0.5)
        if norm.isfinite() and norm < 1.5:
            self.optimizer.step()
        return norm

    def left(self):
        gradients = [each.grad for each in self.model.parameters()]
        return [[each.detach() for each in self.model.state_dict().values()], tg.get_rng_state(), gradients]


@pytest.mark.parametrize("look", ["before", "between", "after"])
def test_a_step_that_looks_at_its_loss_changes_nothing_twice(sides, look):
    def make():
        trainer = Trainer(look)
        return trainer.step, trainer.left, lambda call: [tg.tensor(array(5, 3, seed=call))]

    sides.run(make, 16)
    assert sides.reasons() == []
    assert sides.replays() >= 8


def test_a_step_that_looks_at_its_gradients_changes_nothing_twice(sides):
    def make():
        trainer = Trainer("none")
        return trainer.clipped, trainer.left, lambda call: [tg.tensor(array(5, 3, seed=call) * 2)]

    sides.run(make, 24)
    assert sides.reasons() == []
    assert sides.replays() >= 12
    assert len(sides.compiled.plans()) > 1


def test_gradients_in_the_places_of_none_are_removed_again(sides):
    def make():
        weight = tg.tensor(array(3), requires_grad=True)
        optimizer = optim.SGD([weight], lr=0.1)

        def arguments(call):
            weight.grad = None
            return _few(call)

        return (lambda x: _norm(weight, optimizer, x)), lambda: [weight], arguments

    sides.run(make, 6 * FEW)
    assert sides.reasons() == []
    assert sides.replays() >= 3 * FEW and len(sides.compiled.plans()) == 2


def test_gradients_that_are_filled_with_zeros_are_not_put_back(sides):
    def make():
        trainer = Trainer("zeros")
        return trainer.clipped, trainer.left, lambda call: [tg.tensor(array(5, 3, seed=call) * 2)]

    sides.run(make, 12)
    assert "follow from a change" in sides.reasons()[0]


def _norm(weight, optimizer, x):
    (weight * x).sum().backward()
    if weight.grad.sum() > 0:
        weight.grad.mul_(2)


def _after_two_passes(weight, optimizer, x):
    optimizer.zero_grad()
    (weight * x).sum().backward()
    optimizer.step()
    (weight * x).square().sum().backward()
    return weight.detach() * 2 if weight.grad.sum() > 0 else x


def _after_a_step(weight, optimizer, x):
    (weight * x).sum().backward()
    optimizer.step()
    return weight.detach() * 2 if weight.sum() > 0 else x


def _after_a_write(weight, optimizer, x):
    x.mul_(2)
    return x + 1 if x.sum() > 0 else x * 1


REFUSED = [_norm, _after_two_passes, _after_a_step, _after_a_write]


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_follows_from_a_change_is_not_looked_at(sides, function):
    def make():
        weight = tg.tensor(array(3), requires_grad=True)
        optimizer = optim.SGD([weight], lr=0.1)
        return (lambda x: function(weight, optimizer, x)), lambda: [weight], _few

    sides.run(make, 3 * FEW)
    assert sides.replays() == 0
    assert "follow from a change" in sides.reasons()[0]


def test_plans_for_memory_of_other_layouts_are_not_joined(sides):
    def make():
        weight = tg.tensor(array(37, 41))

        def run(x):
            spread = weight * 1.1
            sums = (weight * 0.7).sum(0)
            return (sums, x) if x.sum() > 0 else (sums * 2, spread.exp())

        def arguments(call):
            if call == 3:
                weight.data = weight.t().contiguous().t()
            return [tg.tensor(array(2, seed=call)) * (1 if call < 3 else -1)]

        return run, list, arguments

    sides.run(make, 9)
    assert len(sides.compiled.plans()) == 2
    assert sides.replays() >= 4


def test_the_least_recently_used_plans_of_a_tree_are_dropped(monkeypatch):
    monkeypatch.setattr(branches, "_PATHS", 3)
    run = tg.compile(lambda x: x * int(x[0]))
    for number in [0, 1, 2, 0, 3]:
        for _ in range(3):
            assert run(tg.full((2,), float(number))).tolist() == [number**2] * 2
    ((tree,),) = [entry.plans for entry in run._entries.values()]
    assert sorted(plan.looks[0].value for plan in tree.plans) == [0, 2, 3]
    assert tree.dropped == 1


def test_values_that_are_others_in_most_calls_are_a_reason(sides, monkeypatch):
    monkeypatch.setattr(branches, "_PATHS", 3)
    monkeypatch.setattr(entries, "_DROPPED", 4)
    sides.run(lambda: (lambda x: x * int(x[0]), list, lambda call: [tg.full((2,), call // 2)]), 30)
    assert "int() reads elements, which are others from call to call" in sides.reasons()[0]
    assert not sides.compiled.plans()


def test_an_error_in_a_part_has_the_message_of_an_eager_call():
    def function(x, index):
        return x[index] * 2 if x.sum() > 0 else x

    run, index = tg.compile(function), tg.tensor([0, 1])
    for _ in range(4):
        run(tg.ones(2), index)
    with pytest.raises(IndexError) as found:
        run(tg.ones(2), tg.tensor([0, 5]))
    with pytest.raises(IndexError, match=str(found.value).replace("(", r"\(").replace(")", r"\)")):
        function(tg.ones(2), tg.tensor([0, 5]))
    assert run(tg.ones(2), index).tolist() == [2, 2]


def test_a_plan_for_some_values_is_neither_saved_nor_exported(tmp_path):
    run = tg.compile(_truth)
    for call in range(4 * FEW):
        run(*_few(call))
    assert f"where bool() of {__file__.rpartition('/')[2]}" in run.explain()
    for plan in run.plans():
        with pytest.raises(tg.errors.ArgumentTypeError, match="looked at"):
            plan.save(tmp_path / "plan")
        with pytest.raises(tg.errors.ArgumentTypeError, match="looked at"):
            plan.to_onnx(tmp_path / "plan.onnx")
