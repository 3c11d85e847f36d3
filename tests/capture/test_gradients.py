"""``.grad`` read, changed and assigned inside a compiled step: recorded, with the bits of eager calls."""

import pytest
import telegrad as tg
from helpers.compiled import array
from telegrad import nn, optim


def _model():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def _batch(call):
    return [tg.tensor(array(5, 3, seed=call))]


def _clamped(model, optimizer, x):
    optimizer.zero_grad()
    (model(x) ** 2).sum().backward()
    for each in model.parameters():
        each.grad.clamp_(-0.1, 0.1)
    optimizer.step()


def _scaled_by_norm(model, optimizer, x):
    optimizer.zero_grad()
    loss = (model(x) ** 2).sum()
    loss.backward()
    norm = tg.stack([each.grad.norm() for each in model.parameters() if each.grad is not None]).norm()
    for each in model.parameters():
        each.grad *= 0.5 / (norm + 1e-6)
    optimizer.step()
    return loss.detach(), norm


def _by_hand(model, optimizer, x):
    (model(x) ** 2).sum().backward()
    with tg.no_grad():
        for each in model.parameters():
            each.sub_(each.grad * 0.1)
            each.grad = None


def _zeroed(model, optimizer, x):
    for each in model.parameters():
        if each.grad is not None:
            each.grad.zero_()
    (model(x) ** 2).sum().backward()
    optimizer.step()


def _zeros(model, optimizer, x):
    optimizer.zero_grad(set_to_none=False)
    (model(x) ** 2).sum().backward()
    optimizer.step()


def _accumulated(model, optimizer, x):
    optimizer.zero_grad()
    for part in tg.chunk(x, 2):
        (model(part) ** 2).sum().backward()
    for each in model.parameters():
        each.grad.div_(2)
    (model(x) ** 3).sum().backward()
    optimizer.step()
    return [each.grad for each in model.parameters()]


def _read_before_and_after(model, optimizer, x):
    optimizer.zero_grad()
    model(x).sum().backward()
    held = [each.grad for each in model.parameters()]
    before = [each * 1 for each in held]
    (model(x) ** 2).sum().backward()
    after = [each * 1 for each in held]
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    clipped = [each * 1 for each in held]
    for each in held:
        each.add_(1)
    optimizer.step()
    return before, after, clipped


def _assigned(model, optimizer, x):
    optimizer.zero_grad()
    for each in model.parameters():
        each.grad = each.detach() * x.sum()
    model(x).sum().backward()
    noise = [each.grad.sign() for each in model.parameters()]
    for each, other in zip(model.parameters(), noise):
        each.grad = other
    optimizer.step()


def _assigned_argument(model, optimizer, x):
    (weight, *_) = model.parameters()
    weight.grad = x[:4, :]
    optimizer.step()
    x.mul_(2)


def _swapped(model, optimizer, x):
    optimizer.zero_grad()
    (model(x) ** 2).sum().backward()
    first, _, second, _ = model.parameters()
    kept = first.grad
    first.grad = None
    model(x).sum().backward()
    return kept, first.grad, kept + first.grad, second.grad * 2


STEPS = [
    *(_clamped, _scaled_by_norm, _by_hand, _zeroed, _zeros, _accumulated, _read_before_and_after),
    *(_assigned, _assigned_argument, _swapped),
]


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_step_that_uses_gradients_is_replayed(sides, step, kind):
    def make():
        model = _model()
        optimizer = kind(model.parameters(), lr=0.1)

        def run(x):
            return step(model, optimizer, x)

        return run, lambda: [*model.parameters(), *[each.grad for each in model.parameters()]], _batch

    sides.run(make, calls=7)
    assert sides.reasons() == []
    assert sides.replays() >= 3


def test_gradients_that_a_program_keeps_are_not_overwritten(sides):
    kept = []

    def make():
        model = _model()

        def run(x):
            for each in model.parameters():
                each.grad = None
            model(x).sum().backward()
            for each in model.parameters():
                each.grad.mul_(2)

        def state():
            kept.extend((each.grad, each.grad.tolist()) for each in model.parameters())
            return [each.grad for each in model.parameters()]

        return run, state, _batch

    sides.run(make)
    assert sides.replays() == 4
    assert all(tensor.tolist() == then for tensor, then in kept)


def test_a_gradient_that_is_missing_or_laid_out_otherwise_before_a_call(sides):
    def make():
        weight = tg.tensor(array(3, 4), requires_grad=True)

        def run(x):
            had = weight.grad is not None
            if had:
                weight.grad.mul_(2)
            (weight * x).sum().backward()
            return weight.grad.sum(0)

        def state():
            return [weight.grad]

        def arguments(call):
            if call in (4, 5, 9):
                weight.grad = None
            if call in (7, 12):
                weight.grad = tg.tensor(array(4, 3, seed=call)).t()
            return [tg.tensor(array(3, 4, seed=call))]

        return run, state, arguments

    sides.run(make, calls=16)
    assert sides.reasons() == []
    assert sides.replays() >= 6


def test_graphs_of_gradients_run_eagerly(sides):
    def make():
        weight = tg.tensor(array(3), requires_grad=True)

        def run(x):
            weight.grad = None
            ((weight**3) * x).sum().backward(create_graph=True)
            loss = weight.grad.sum()
            weight.grad = None
            loss.backward()
            return weight.grad

        return run, lambda: [weight.grad], lambda call: [tg.tensor(array(3, seed=call))]

    sides.run(make)
    assert sides.replays() == 0
    assert "create_graph" in sides.reasons()[0]


def test_a_plan_that_reads_gradients_is_not_saved(tmp_path):
    weight = tg.tensor(array(3), requires_grad=True)

    @tg.compile
    def run(x):
        weight.grad = None
        (weight * x).sum().backward()
        weight.grad.mul_(2)

    for _ in range(3):
        run(tg.ones(3))
    with pytest.raises(tg.errors.ArgumentTypeError, match="read_gradient"):
        run.plans()[0].save(tmp_path / "plan")
