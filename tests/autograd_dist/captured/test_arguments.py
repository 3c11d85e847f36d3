"""Compiled steps whose calls have references and functions as arguments, as in PyTorch's tutorials, and nested results."""

import warnings

import pytest
import telegrad as tg
from telegrad import autograd_dist, nn, rpc
from telegrad.base.errors import RpcError
from telegrad.optim import SGD
from telegrad.testing import in_process_cluster

STEPS = 8
generator = tg.Generator()
BATCHES = [tg.randn(5, 4, generator=generator.manual_seed(step)) for step in range(STEPS)]


class Server(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        for each in self.layer.parameters():
            each.data = tg.linspace(-1, 1, each.numel()).reshape(each.shape)

    def forward(self, x):
        return self.layer(x).tanh()

    def halves(self, x):
        first, second = self(x).chunk(2, dim=1)
        return {"first": first, "others": [second, (second * 2,)]}

    def count(self, x):
        self.layer.weight.data = self.layer.weight.detach() + x.mean(0)
        self.calls = getattr(self, "calls", 0) + 1
        return self.calls

    def named(self):
        return {**self.state_dict(), "nothing at all": [None]}

    def references(self):
        return [rpc.RRef(each) for each in self.parameters()]

    def push(self, gradient):
        self.layer.bias.data = self.layer.bias.detach() - gradient * 0.1
        return self.layer.bias.detach()


def call_method(method, reference, *args):
    return method(reference.local_value(), *args)


def remote_method(method, reference, *args):
    return rpc.rpc_sync(reference.owner(), call_method, args=(method, reference, *args))


class Trainer:
    def __init__(self):
        self.server = rpc.remote("b", Server)
        self.optimizer = tg.DistributedOptimizer(SGD, remote_method(Server.references, self.server), lr=0.1)

    def with_gradients(self, x):
        with autograd_dist.context() as context:
            loss = remote_method(Server.forward, self.server, x).square().mean()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def with_messages(self, x):
        return remote_method(Server.push, self.server, x.mean(0)[:2])

    def with_halves(self, x):
        with autograd_dist.context() as context:
            given = self.server.rpc_sync().halves(x)
            second, (third,) = given["others"]
            autograd_dist.backward(context, [(given["first"] * second + third).sum()])
            self.optimizer.step(context)
        return third.detach()

    def with_state(self, x):
        state = self.server.rpc_sync().named()
        self.server.rpc_sync().push(x.mean(0)[:2] + state["layer.bias"])
        return [state["layer.weight"] + 1, state["nothing at all"]]

    def without_results(self, x):
        self.server.rpc_sync().count(x)
        rpc.rpc_sync("b", call_method, (Server.count, self.server, x))
        future = self.server.rpc_async().count(x)
        tg.futures.wait_all([self.server.rpc_async().count(x), future])
        return self.server.rpc_sync().state_dict()["layer.weight"]

    def with_a_number(self, x):
        number = self.server.rpc_sync().count(x)
        return x * number

    def with_a_late_number(self, x):
        future = self.server.rpc_async().count(x)
        future.wait()
        return x * future.value()

    def by_name(self, x):
        name = self.server.owner_name()
        return rpc.rpc_sync(name, call_method, (Server.push, self.server, x.mean(0)[2:]))


@pytest.fixture(scope="module", autouse=True)
def _workers():
    with in_process_cluster("a", "b") as agents, agents[0].use():
        yield


@pytest.mark.parametrize("name", ["with_gradients", "with_messages", "with_halves", "without_results", "by_name"])
def test_a_replay_gives_what_the_step_gives(name):
    eager, trainer = Trainer(), Trainer()
    step = tg.compile(getattr(trainer, name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in BATCHES:
            assert step(x).tolist() == getattr(eager, name)(x).tolist()
    assert [plan.replays for plan in step.plans()] == [STEPS - 2]


def test_a_state_is_a_dictionary():
    eager, trainer = Trainer(), Trainer()
    step = tg.compile(trainer.with_state)
    for x in BATCHES:
        (weight, nothing), (expected, _) = step(x), eager.with_state(x)
        assert weight.tolist() == expected.tolist() and nothing == [None]
    assert [plan.replays for plan in step.plans()] == [STEPS - 2]


NUMBERS = {
    "with_a_number": "a call of another worker outside of an autograd context returned something else",
    "with_a_late_number": "it uses the result of a call of another worker, for which it has waited before",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_is_used_is_not_replayed(name):
    eager, trainer = Trainer(), Trainer()
    step = tg.compile(getattr(trainer, name))
    with pytest.warns(UserWarning) as told:
        for x in BATCHES:
            assert step(x).tolist() == getattr(eager, name)(x).tolist()
    assert NUMBERS[name] in str(told[0].message)


def test_a_step_of_another_reference_is_another():
    first, second = Trainer(), Trainer()

    @tg.compile
    def step(trainer, x):
        return trainer.with_messages(x)

    expected = Trainer()
    for x in BATCHES:
        assert step(first, x).tolist() == step(second, x).tolist() == expected.with_messages(x).tolist()
    assert [plan.replays for plan in step.plans()] == [STEPS - 2] * 2


@pytest.mark.parametrize("name", ["with_gradients", "with_messages", "by_name"])
def test_a_released_reference_is_refused_as_in_eager_steps(name):
    trainer = Trainer()
    step = tg.compile(getattr(trainer, name))
    for x in BATCHES:
        step(x)
    assert sum(plan.replays for plan in step.plans()) == STEPS - 2
    trainer.server.release()
    for each in (step, getattr(trainer, name)):
        with pytest.raises(RpcError, match="was released"):
            each(BATCHES[0])


def test_a_local_value_in_a_step():
    reference, eager = rpc.RRef(Server()), Server()
    step = tg.compile(lambda x: reference.local_value()(x).detach())
    for x in BATCHES:
        assert step(x).tolist() == eager(x).tolist()
    assert [plan.replays for plan in step.plans()] == [STEPS - 2]
