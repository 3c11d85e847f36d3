"""Compiled steps that call a server before their autograd context: these lines run eagerly, those behind it are replayed."""

import pytest
import telegrad as tg
from helpers.captured_steps import filled
from telegrad import autograd_dist, nn, rpc
from telegrad.optim import SGD
from telegrad.testing import in_process_cluster

STEPS = 9


class Server:
    """Owner of a factor that is another one in each call."""

    def __init__(self):
        self.factor, self.calls = tg.full((4,), 0.5), 0

    def pull(self):
        self.calls += 1
        return self.factor * (1 + self.calls % 3)

    def seen(self):
        return self.calls


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.slope = filled(nn.Linear(4, 4), 1), 1.0

    def forward(self, x):
        return self.linear(x).tanh() * self.slope

    def lend(self):
        return [tg.RRef(each) for each in self.parameters()]

    def change(self, slope):
        self.slope = slope


class Model:
    def __init__(self):
        self.server, self.layer = rpc.remote("b", Server), rpc.remote("c", Layer)
        self.optimizer = autograd_dist.DistributedOptimizer(SGD, self.layer.rpc_sync().lend(), lr=0.1)
        self.data = tg.Generator().manual_seed(3)

    def step(self, x):
        factor = self.server.rpc_sync().pull()
        other = rpc.rpc_sync("b", tg.add, (factor, 1.0))
        with autograd_dist.context() as context:
            loss = (self.layer.rpc_sync().forward(x * factor) * other).square().mean()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def train(self, step, steps=STEPS):
        return [step(tg.randn(3, 4, generator=self.data)).item() for _ in range(steps)]


@pytest.fixture
def models():
    """Two equal models."""
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        yield Model(), Model()


def test_the_context_is_replayed(models):
    eager, other = models
    step = tg.compile(other.step)
    with pytest.warns(UserWarning, match="in part: it calls a worker outside of the autograd context before") as told:
        losses = other.train(step)
    assert losses == eager.train(eager.step)
    first = Model.step.__code__.co_firstlineno + 1
    assert (
        f"(test_calls_before.py:{first}, test_calls_before.py:{first + 1})" in str(told[0].message) and len(told) == 1
    )
    assert sum(plan.replays for plan in step.plans()) == STEPS - 4


def test_a_callee_that_refuses_gets_no_call_twice(models):
    eager, other = models
    step = tg.compile(other.step)
    with pytest.warns(UserWarning, match="in part"):
        losses = other.train(step, 5)
        other.layer.rpc_sync().change(0.5)
        losses += other.train(step, 5)
    expected = eager.train(eager.step, 5)
    eager.layer.rpc_sync().change(0.5)
    assert losses == expected + eager.train(eager.step, 5)
    assert other.server.rpc_sync().seen() == eager.server.rpc_sync().seen() == 10
    assert sum(plan.replays for plan in step.plans()) > 2
