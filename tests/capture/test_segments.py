"""Functions of which some lines run eagerly: what is between these is replayed, and the numbers are those of each call."""

import math

import pytest
import telegrad as tg
from helpers.compiled import array
from telegrad import nn, optim
from telegrad.nn import functional as F

CALLS = 16


class Trainer:
    """A model, and what typical programs keep of their steps."""

    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)
        self.scaler = tg.amp.GradScaler("cpu", init_scale=8.0, growth_interval=5)
        self.total, self.count, self.best, self.history = 0.0, 0, math.inf, []

    def logged(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.history.append(loss.item())

    def printed(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        print(f"loss {loss.item():.3f}")

    def clipped(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        return {"loss": loss.item(), "norm": float(norm)}

    def scaled(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    def stopped_early(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        value = loss.item()
        if value < self.best:
            self.best = value
        return value > 2 * self.best

    def scheduled(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    def accumulated(self, x, y):
        loss = F.cross_entropy(self.model(x), y) / 4
        loss.backward()
        self.count += 1
        if self.count % 4 == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.item() * 4

    def measured(self, x, y):
        self.optimizer.zero_grad()
        scores = self.model(x)
        loss = F.cross_entropy(scores, y)
        loss.backward()
        self.optimizer.step()
        self.total += loss.item() * len(y)
        self.count += (scores.argmax(1) == y).sum().item()
        return self.total, self.count / len(y)

    def checked(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        value = loss.item()
        if not math.isfinite(value):
            raise ValueError(value)
        loss.backward()
        self.optimizer.step()
        return value

    def epoch(self, x, y):
        total, correct = 0.0, 0
        for part in range(2):
            self.optimizer.zero_grad()
            scores = self.model(x[part::2])
            loss = F.cross_entropy(scores, y[part::2])
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            correct += (scores.argmax(1) == y[part::2]).sum().item()
        return total / 2, correct

    def evaluated(self, x, y):
        with tg.no_grad():
            scores = self.model(x)
            loss = F.cross_entropy(scores, y)
            correct = (scores.argmax(1) == y).sum().item() + loss.item()
        return correct / len(y)

    def with_rate(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item(), self.optimizer.param_groups[0]["lr"]

    def left(self):
        kept = self.total, self.count, self.best, list(self.history), self.scaler.state_dict()
        gradients = [each.grad for each in self.model.parameters()]
        return [*[each.detach() for each in self.model.state_dict().values()], *gradients, repr(kept)]


def _batch(call):
    return [tg.tensor(array(6, 4, seed=call)), tg.tensor([(call + each) % 3 for each in range(6)])]


STEPS = [
    *("logged", "printed", "clipped", "scaled", "stopped_early", "scheduled", "accumulated", "measured"),
    *("checked", "epoch", "evaluated", "with_rate"),
]


def _replays(sides):
    return _segment_replays(sides.compiled)


def _segment_replays(compiled):
    return sum(plan.replays for plan in compiled.plans())


@pytest.mark.parametrize("name", STEPS)
def test_typical_steps_are_replayed(sides, name, capsys):
    def make():
        trainer = Trainer()
        return getattr(trainer, name), trainer.left, _batch

    sides.run(make, CALLS)
    assert _replays(sides) >= CALLS - 9
    assert all("runs eagerly in part" in each for each in sides.reasons())
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(printed) // 2] == printed[len(printed) // 2 :]


def test_an_argument_that_counts_the_calls(sides):
    def make():
        trainer, seen = Trainer(), []

        def step(number, x, y):
            trainer.optimizer.zero_grad()
            loss = F.cross_entropy(trainer.model(x), y)
            loss.backward()
            trainer.optimizer.step()
            if number % 3 == 0:
                seen.append(loss.item())

        return step, lambda: [*trainer.left(), seen], lambda call: [call, *_batch(call)]

    sides.run(make, 22)
    assert _replays(sides) == 5
    assert "the arguments number are others" in sides.reasons()[0]


def _in_branches(seen):
    def run(x):
        seen.append(1)
        if len(seen) % 2:
            y = x.tanh() * 2
            x = (y + x).exp()
        else:
            x = x.sin() * 3 + 1
        for _ in range(2):
            x = (x * 0.5).cos() + 0.1
            seen.append(x.sum().item())
        return (x * 2).tanh().exp()

    return run


def _writes_to_arguments(seen):
    def run(x):
        x.mul_(0.5)
        x.add_(1)
        x.tanh_()
        seen.append(x.sum().item())
        y = x.view(-1)
        y[0] = 3.0
        z = y * 2 + 1
        seen.append(z[0].item())
        return x, z

    return run


def _keeps_a_list(seen):
    def run(x):
        layers = [x.tanh(), x.exp(), x.sin()]
        same = layers
        seen.append(x.sum().item())
        same.append(x)
        return [each * 2 for each in layers]

    return run


def _captured(seen):
    def run(x):
        scale = x.abs().sum().sqrt() + 1

        def scaled(y):
            return y * scale

        seen.append(x.sum().item())
        return scaled(x).tanh().exp() * 2

    return run


def _tries(seen):
    def run(x):
        y = x.exp().tanh()
        try:
            y = y.sin() * 2 + 1
            seen.append(y.sum().item())
            raise KeyError
        except KeyError:
            y = (y * 2).cos()
        return y

    return run


def _draws(seen):
    def run(x):
        x = F.dropout(x, 0.5) + tg.rand(3)
        x = x.tanh()
        seen.append(x.sum().item())
        return F.dropout(x.exp() * 2, 0.3)

    return run


@pytest.mark.parametrize("make", [_in_branches, _writes_to_arguments, _keeps_a_list, _captured, _tries, _draws])
def test_python_goes_its_way_between_the_segments(sides, make):
    def prepare():
        seen = []
        return make(seen), lambda: [repr(seen), tg.get_rng_state()], lambda call: [tg.tensor(array(3, seed=call))]

    sides.run(prepare, CALLS)
    assert _replays(sides) > 0 or make in (_keeps_a_list, _captured, _tries)


class Logged(nn.Module):
    """A module that keeps a number of each call."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.log = nn.Linear(4, 5), nn.Linear(5, 3), []

    def forward(self, x):
        hidden = self.first(x).tanh() * 2
        self.log.append(hidden.sum().item())
        return self.second(hidden).exp() * 2 + 1


@pytest.mark.parametrize("gradients", [False, True])
def test_the_forward_of_a_module_is_divided(sides, gradients):
    def make():
        module = Logged().requires_grad_(gradients)
        return module, lambda: [*module.state_dict().values(), list(module.log)], lambda call: _batch(call)[:1]

    sides.run(make, CALLS)
    assert _replays(sides) >= CALLS - 9


@pytest.mark.filterwarnings("ignore:.* runs eagerly in part")
def test_hooks_that_come_later_are_called_for_a_divided_module():
    module = Logged()
    compiled = tg.compile(module)
    for call in range(CALLS):
        before = compiled(*_batch(call)[:1])
    assert _segment_replays(compiled)
    module.register_forward_hook(lambda module, args, result: result + 1)
    after = compiled(*_batch(CALLS - 1)[:1])
    assert after.tolist() == (before + 1).tolist() and len(module.log) == CALLS + 1


def test_gradients_of_several_segments_are_added_up_as_eagerly(sides):
    def make():
        weight = tg.tensor(array(50, seed=1), requires_grad=True)
        values = []

        def run(x):
            weight.grad = None
            loss = ((weight * x).tanh() * weight).exp().sum()
            values.append(loss.item())
            loss = loss + (weight * 0.1).sin().sum()
            loss.backward()

        return run, lambda: [weight, repr(values)], lambda call: [tg.tensor(array(50, seed=call))]

    sides.run(make, CALLS)


@pytest.mark.parametrize("looks", ["retain_grad", "autograd", "create_graph"])
def test_a_function_that_looks_at_its_graph_is_not_divided(sides, looks):
    def make():
        weight, values = tg.tensor(array(3), requires_grad=True), []

        def run(x):
            hidden = (weight * x).tanh()
            loss = (hidden * hidden).exp().sum()
            values.append(loss.item())
            if looks == "retain_grad":
                hidden.retain_grad()
                loss.backward()
                return hidden.grad
            if looks == "autograd":
                return tg.autograd.grad(loss, [hidden])
            loss.backward(create_graph=True)
            return weight.grad.detach()

        def arguments(call):
            weight.grad = None
            return [tg.tensor(array(3, seed=call))]

        return run, lambda: [repr(values)], arguments

    sides.run(make, CALLS // 2)
    assert sides.replays() == 0 and not sides.compiled._segments.used
