"""Compiled steps whose parameters move to another owner between two replays: as eager steps."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import autograd_dist, nn, optim, rpc
from telegrad.testing import in_process_cluster


@pytest.fixture
def workers():
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        yield agents


class Owner:
    def __init__(self, state=None):
        self.net = nn.Linear(4, 4)
        self.net.load_state_dict(state or {"weight": tg.eye(4) * 0.5, "bias": tg.ones(4) * 0.25})

    def forward(self, x):
        return self.net(x).tanh()

    def parameters(self):
        return [tg.RRef(each) for each in self.net.parameters()]

    def state(self):
        return self.net.state_dict()


class Training:
    """Training of one layer at another worker."""

    def __init__(self):
        self.use("b")

    def use(self, worker, state=None):
        self.remote = rpc.remote(worker, Owner, (state,))
        references = self.remote.rpc_sync().parameters()
        self.optimizer = autograd_dist.DistributedOptimizer(optim.SGD, references, lr=0.1)

    def move(self, worker):
        self.use(worker, self.remote.rpc_sync().state())

    def step(self, x):
        with autograd_dist.context() as context:
            loss = self.remote.rpc_sync().forward(x).square().sum()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def train(self, step):
        return [step(tg.full((2, 4), 0.25 * number)).item() for number in range(5)]


def test_all_parameters_move(workers):
    eager, other = Training(), Training()
    step = tg.compile(other.step)
    for worker in ("c", "b", "c"):
        assert other.train(step) == eager.train(eager.step)
        assert f"hop to '{other.remote.owner_name()}'" in step.explain()
        eager.move(worker)
        other.move(worker)
    for name, value in eager.remote.rpc_sync().state().items():
        np.testing.assert_array_equal(other.remote.rpc_sync().state()[name].numpy(), value.numpy())
    assert len(step.plans()) >= 2


def test_the_optimizer_s_parameters_move_and_the_layer_does_not(workers):
    eager, other = Training(), Training()
    step = tg.compile(other.step)
    layers = {each: each.remote for each in (eager, other)}
    assert other.train(step) == eager.train(eager.step)
    for each in (eager, other):
        each.move("c")
        each.remote = layers[each]
    assert other.train(step) == eager.train(eager.step)  # its optimizer steps there without gradients
    assert "the optimizer steps at 'c' with backward" in step.explain()
