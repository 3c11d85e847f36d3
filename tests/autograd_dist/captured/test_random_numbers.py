"""Compiled steps that draw random numbers before they call other workers: these are drawn again if a replay is given up."""

import numpy as np
import pytest
import telegrad as tg
from helpers.captured_steps import filled, replays
from telegrad import autograd_dist, nn, rpc
from telegrad.autograd_dist.captured.parts import CapturedParts
from telegrad.nn.functional import dropout
from telegrad.optim import SGD
from telegrad.testing import in_process_cluster

SIZE, STEPS = 8, 8


@pytest.fixture(scope="module", autouse=True)
def workers():
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        yield agents


class Stage(nn.Module):
    """A layer with dropout, and the next stage if there is one."""

    def __init__(self, seed, following=None):
        super().__init__()
        self.linear, self.following, self.slope = filled(nn.Linear(SIZE, SIZE), seed), following, 1.0

    def forward(self, x):
        h = dropout(self.linear(x).tanh(), 0.25) * self.slope
        return self.following.rpc_sync().forward(h) if self.following is not None else h

    def lend(self):
        return [tg.RRef(each) for each in self.parameters()]

    def numbers(self):
        return [each.detach().clone() for each in self.parameters()]

    def change(self, slope):
        self.slope = slope


class Model:
    """Three stages; each but the first is called by the one before, or by the step.

    Args:
        call: gets the model, and a tensor.
        nested: whether the middle one calls the last.
    """

    def __init__(self, call, nested):
        self.last = rpc.remote("c", Stage, (3,))
        self.middle = rpc.remote("b", Stage, (2, self.last if nested else None))
        self.first, self.call = Stage(1), call
        references = self.first.lend() + self.middle.rpc_sync().lend() + self.last.rpc_sync().lend()
        self.optimizer = autograd_dist.DistributedOptimizer(SGD, references, lr=0.1, momentum=0.9)

    def step(self, x):
        with autograd_dist.context() as context:
            loss = self.call(self, x).square().mean()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def train(self, step, change=lambda model: None):
        """Return the losses of some steps; a change is made before the fifth."""
        tg.manual_seed(5)
        losses = []
        for number in range(STEPS):
            if number == 4:
                change(self)
            losses.append(step(tg.full((3, SIZE), 0.125 * (number + 1))).item())
        return losses

    def values(self):
        remote = [each for stage in (self.middle, self.last) for each in stage.rpc_sync().numbers()]
        return [each.numpy() for each in (*self.first.numbers(), *remote)]


def nested(model, x):
    return model.middle.rpc_sync().forward(model.first(dropout(x, 0.5)))


def chain(model, x):
    h = model.middle.rpc_sync().forward(model.first(x))
    return model.last.rpc_sync().forward(dropout(h, 0.25))


def drawn_elsewhere(model, x):
    """Draw nothing at this worker: all workers of these tests have one generator."""
    return model.last.rpc_sync().forward(model.middle.rpc_sync().forward(model.first.linear(x) * model.first.slope))


def both(model, x):
    return model.last.rpc_sync().forward(nested(model, x))


FORMS = {
    "nested": (nested, True),
    "chain": (chain, False),
    "drawn elsewhere": (drawn_elsewhere, False),
    "both": (both, True),
}
CHANGES = {
    "nothing": lambda model: None,
    "this worker": lambda model: model.first.change(0.5),
    "the middle": lambda model: model.middle.rpc_sync().change(0.5),
    "the last": lambda model: model.last.rpc_sync().change(0.5),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_bits_are_those_of_eager_steps(form, change):
    eager, other = Model(*form), Model(*form)
    step = tg.compile(other.step)
    assert other.train(step, change) == eager.train(eager.step, change)
    for one, two in zip(eager.values(), other.values()):
        np.testing.assert_array_equal(one, two)
    assert replays(step) >= (STEPS - 2 if change is CHANGES["nothing"] else 2)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_worker_keeps_nothing_of_a_replay_that_another_one_has_refused(workers, form):
    model = Model(*form)
    step = tg.compile(model.step)
    model.train(step)
    before = replays(step)
    model.last.rpc_sync().change(0.5)
    step(tg.ones(3, SIZE))
    tables = [each.part(CapturedParts)._table for each in workers]
    assert before and replays(step) == 0, step.explain()
    assert not [kept for table in tables for replays_of in table._replays.values() for kept in replays_of]
