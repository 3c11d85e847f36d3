"""Compiled steps that draw random numbers before they call other workers: these are drawn again if a replay is given up."""

import numpy as np
import pytest
import telegrad as tg
from helpers.captured_steps import filled, replays
from telegrad import autograd_dist, nn, rpc
from telegrad.nn.functional import dropout
from telegrad.optim import SGD
from telegrad.testing import in_process_cluster

SIZE, STEPS = 8, 8


@pytest.fixture(scope="module", autouse=True)
def _workers():
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        yield


class Stage(nn.Module):
    """A layer with dropout, and the next stage if there is one."""

    def __init__(self, seed, following=None):
        super().__init__()
        self.linear, self.following, self.slope = filled(nn.Linear(SIZE, SIZE), seed), following, 1.0

    def forward(self, x):
        h = dropout(self.linear(x), 0.25) * self.slope
        return self.following.rpc_sync().forward(h) if self.following is not None else h

    def lend(self):
        return [tg.RRef(each) for each in self.parameters()]

    def numbers(self):
        return [each.detach().clone() for each in self.parameters()]

    def change(self, slope):
        self.slope = slope


class Model:
    """Three stages; each but the first is called by the one before."""

    def __init__(self):
        self.last = rpc.remote("c", Stage, (3,))
        self.middle = rpc.remote("b", Stage, (2, self.last))
        self.first = Stage(1)
        references = self.first.lend() + self.middle.rpc_sync().lend() + self.last.rpc_sync().lend()
        self.optimizer = autograd_dist.DistributedOptimizer(SGD, references, lr=0.1, momentum=0.9)

    def step(self, x):
        h = dropout(x, 0.5)
        with autograd_dist.context() as context:
            loss = self.middle.rpc_sync().forward(self.first(h)).square().mean()
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


CHANGES = {
    "nothing": lambda model: None,
    "this worker": lambda model: model.first.change(0.5),
    "the middle": lambda model: model.middle.rpc_sync().change(0.5),
    "the last": lambda model: model.last.rpc_sync().change(0.5),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_bits_are_those_of_eager_steps(change):
    eager, other = Model(), Model()
    step = tg.compile(other.step)
    assert other.train(step, change) == eager.train(eager.step, change)
    for one, two in zip(eager.values(), other.values()):
        np.testing.assert_array_equal(one, two)
    assert replays(step) >= (STEPS - 2 if change is CHANGES["nothing"] else 2)
