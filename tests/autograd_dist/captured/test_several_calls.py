"""Compiled steps with several calls of other workers: chains, calls side by side, and several owners of parameters."""

import threading

import numpy as np
import pytest
import telegrad as tg
from helpers.captured_steps import FailsWhereTold, asked, check_same, filled, replays
from telegrad import autograd_dist, nn, rpc
from telegrad.autograd_dist.captured.callee import CalleePart, CalleeReplay
from telegrad.autograd_dist.captured.parts import CapturedParts
from telegrad.base.errors import RpcError, RpcTimeoutError, WorkerLostError
from telegrad.optim import SGD, Adam
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.testing import in_process_cluster

STEPS = 20
NAMES = "abcde"
SIZE = 4
KINDS = {"SGD": (SGD, {"lr": 0.05, "momentum": 0.9}), "Adam": (Adam, {"lr": 0.01})}


@pytest.fixture(scope="module")
def workers():
    """Agents for all tests that end none."""
    with in_process_cluster(*NAMES, options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents


class Layer(nn.Module):
    """A layer on another worker."""

    def __init__(self, seed):
        super().__init__()
        self.linear = filled(nn.Linear(SIZE, SIZE), seed)
        self.seed, self.mean, self.var = seed, tg.zeros(SIZE), tg.ones(SIZE)

    def forward(self, x):
        return tg.tanh(self.linear(x))

    def twice(self, x):
        return self.forward(self.forward(x))

    def normed(self, x):
        """Change running statistics."""
        return nn.functional.batch_norm(self.forward(x), self.mean, self.var, training=True)

    def noisy(self, x):
        return nn.functional.dropout(self.linear(x), 0.25)

    def refs(self):
        return [tg.RRef(each) for each in self.parameters()]

    def numbers(self):
        return [each.detach().clone() for each in self.parameters()]

    def change(self):
        self.linear.bias = nn.Parameter(tg.ones(SIZE))


class Model:
    """Layers on several workers, two on this one, and an optimizer; ``call`` gets the references and a tensor."""

    def __init__(self, call, kind=SGD, owners="bcde", **options):
        self.call = call
        self.remotes = [rpc.remote(name, Layer, (seed,)) for seed, name in enumerate(owners, 1)]
        self.first, self.last = filled(nn.Linear(SIZE, SIZE), 11), filled(nn.Linear(SIZE, 1), 12)
        self.own = [*self.first.parameters(), *self.last.parameters()]
        references = [tg.RRef(each) for each in self.own]
        for remote in self.remotes:
            references += remote.rpc_sync().refs()
        self.optimizer = autograd_dist.DistributedOptimizer(kind, references, **(options or {"lr": 0.05}))
        self.data = tg.Generator().manual_seed(3)

    def step(self, x):
        with autograd_dist.context() as context:
            loss = (self.last(self.call(self.remotes, tg.tanh(self.first(x)))) ** 2).mean()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def train(self, step, steps=STEPS):
        return [step(tg.randn(3, SIZE, generator=self.data)).item() for _ in range(steps)]

    def values(self):
        remote = [each for remote in self.remotes for each in remote.rpc_sync().numbers()]
        return [each.detach().numpy().copy() for each in (*self.own, *remote)]


def chain(remotes, x):
    for each in remotes:
        x = each.rpc_sync().forward(x)
    return x


def side_by_side(remotes, x):
    futures = [each.rpc_async().forward(x) for each in remotes]
    return sum(each.wait() for each in futures)


def two(remotes, x):
    one, other = remotes[0].rpc_async().forward(x), remotes[1].rpc_async().forward(x)
    first = one.wait() * 2
    return other.wait() + first


def all_at_once(remotes, x):
    one, other = tg.futures.wait_all([each.rpc_async().forward(x) for each in remotes[:2]])
    return one * other


def diamond(remotes, x):
    first = remotes[0].rpc_sync().forward(x)
    left, right = remotes[1].rpc_async().forward(first), remotes[2].rpc_async().forward(first)
    return remotes[3].rpc_sync().forward(left.wait() + right.wait())


def in_between(remotes, x):
    future = remotes[0].rpc_async().forward(x)
    here = tg.tanh(x * 2)
    other = remotes[1].rpc_sync().forward(here)
    return future.wait() + other + here


def three_of_one(remotes, x):
    """Call one worker three times side by side: gradients of its parameters are sums of three."""
    futures = [remotes[0].rpc_async().forward(x * scale) for scale in (1.0, 0.5, 2.0)]
    one, two, three = [each.wait() for each in futures]
    return one + two * 3 + three


def chain_of_one(remotes, x):
    for _ in range(3):
        x = remotes[0].rpc_sync().forward(x)
    return x


def functions(remotes, x):
    return rpc.rpc_sync("c", tg.mul, (rpc.rpc_async("b", tg.mul, (x, 2.0)).wait(), 3.0)) + chain(remotes[:2], x)


def compiled(model):
    return tg.compile(model.step)


def check_replayed(make, steps=STEPS):
    """Check that compiled steps are as eager ones, and that nearly all are replays."""
    _, step = check_same(make, steps)
    assert replays(step) >= steps - 2


@pytest.mark.parametrize(
    ("call", "owners", "kind"),
    [
        *[(chain, "bcde", kind) for kind in KINDS],
        (two, "bc", "Adam"),
        (diamond, "bcbc", "Adam"),
        (three_of_one, "b", "Adam"),
        (chain_of_one, "b", "SGD"),
    ],
)
def test_the_bits_are_those_of_eager_steps(workers, call, owners, kind):
    made, options = KINDS[kind]
    check_replayed(lambda: Model(call, made, owners, **options))


@pytest.mark.parametrize("call", [all_at_once, in_between, functions])
def test_other_orders_of_calls(workers, call):
    check_replayed(lambda: Model(call, owners="bc"), 8)


def test_four_side_by_side_are_added_in_one_of_the_orders_of_eager_steps(workers):
    model = Model(side_by_side)
    step = compiled(model)
    losses, expected = model.train(step), Model(side_by_side)
    np.testing.assert_allclose(losses, expected.train(expected.step), rtol=1e-5)
    assert replays(step) >= 1


def test_a_chain_sends_two_requests_a_hop(workers, monkeypatch):
    model = Model(chain)
    step = compiled(model)
    model.train(step, 3)
    sent = asked(monkeypatch)
    model.train(step, 1)
    assert (replays(step), sent) == (2, [*"bcde", *"edcb"])
    assert "8 round trips; the optimizer steps at 'b', 'c', 'd', 'e'" in step.explain()


def test_gradients_of_one_worker_go_together(workers, monkeypatch):
    model = Model(three_of_one, owners="b")
    step = compiled(model)
    model.train(step, 3)
    sent = asked(monkeypatch)
    model.train(step, 1)
    assert (replays(step), len(sent)) == (2, 4)


def test_calls_run_at_the_same_time(workers, monkeypatch):
    model = Model(two, owners="bc")
    step = compiled(model)
    model.train(step, 3)
    both, forward = threading.Barrier(2), CalleePart.forward
    monkeypatch.setattr(CalleePart, "forward", lambda *args: (both.wait(30), forward(*args))[1])
    model.train(step, 1)  # ends only if both are there
    assert replays(step) == 2


# -- what runs eagerly, and says why


def normed(remotes, x):
    return remotes[1].rpc_sync().forward(remotes[0].rpc_sync().normed(x))


def noisy_at_the_end(remotes, x):
    return remotes[1].rpc_sync().noisy(remotes[0].rpc_sync().forward(x))


def mixed(remotes, x):
    return remotes[1].rpc_sync().twice(remotes[0].rpc_sync().forward(remotes[1].rpc_sync().forward(x)))


EAGER = {"changes": (normed, "changes something"), "sums": (mixed, "several times in one call")}


@pytest.mark.parametrize(("call", "reason"), EAGER.values(), ids=EAGER)
def test_what_runs_eagerly(workers, call, reason):
    eager, other = Model(call, owners="bc"), Model(call, owners="bc")
    tg.manual_seed(4)
    expected = eager.train(eager.step, 8)
    tg.manual_seed(4)
    step = compiled(other)
    with pytest.warns(UserWarning, match=reason) as told:
        assert other.train(step, 8) == expected
    assert len([each for each in told if each.category is UserWarning]) == 1


def test_the_last_call_may_change_something(workers):
    losses = []
    for make in (lambda model: model.step, compiled):
        model = Model(noisy_at_the_end, owners="bc")
        step = make(model)
        tg.manual_seed(4)
        losses.append(model.train(step))
    assert losses[0] == losses[1]
    assert replays(step) == STEPS - 2


def test_a_call_after_backward(workers):
    model = Model(chain, owners="b")

    @tg.compile
    def step(x):
        with autograd_dist.context() as context:
            autograd_dist.backward(context, [chain(model.remotes, tg.tanh(model.first(x))).sum()])
            chain(model.remotes, x)
            model.optimizer.step(context)

    with pytest.warns(UserWarning, match="after autograd_dist.backward"):
        for _ in range(3):
            step(tg.ones(3, SIZE))


# -- what goes wrong


@pytest.mark.parametrize("place", [0, 2])
def test_a_callee_changes(workers, place):
    models = [Model(chain, owners="bcd") for _ in range(2)]
    eager, other = models
    step = compiled(other)
    losses = []
    for model, run in ((eager, eager.step), (other, step)):
        losses.append(model.train(run, 4))
        model.remotes[place].rpc_sync().change()
        losses[-1] += model.train(run, 6)
    assert losses[0] == losses[1]
    assert replays(step) >= 4


def test_a_part_is_known_no_more(workers):
    eager, other = [Model(chain, owners="bcd") for _ in range(2)]
    step = compiled(other)
    expected = eager.train(eager.step, 8)
    losses = other.train(step, 4)
    workers[3].part(CapturedParts)._table.clear()
    assert losses + other.train(step, 4) == expected
    assert replays(step) == 2  # of the new plan
    for one, two in zip(eager.values(), other.values()):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("call", [chain, two])
def test_a_lost_callee(call):
    for make in (lambda model: model.step, compiled):
        with in_process_cluster("a", "b", "c") as agents, agents[0].use():
            model = Model(call, owners="bc")
            step = make(model)
            model.train(step, 4)
            agents[2].close("lost by the test")
            for _ in range(2):
                with pytest.raises(WorkerLostError, match="'c'"):
                    model.train(step, 1)


def test_a_callee_is_lost_before_its_gradients_come(monkeypatch):
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        lose_before_gradients(agents, monkeypatch)


def lose_before_gradients(workers, monkeypatch):
    model = Model(chain, owners="bc")
    step = compiled(model)
    model.train(step, 4)
    backward, lost = CalleeReplay.backward, []

    def end(self, *args):
        if not lost:  # gradients come to the last worker of the chain first
            lost.append(workers[1].close("lost by the test"))
        return backward(self, *args)

    monkeypatch.setattr(CalleeReplay, "backward", end)
    with pytest.raises(WorkerLostError, match="'b'"):
        model.train(step, 1)


def test_a_call_that_takes_too_long(workers, monkeypatch):
    model = Model(chain, owners="bc")
    step, go = compiled(model), threading.Event()
    model.train(step, 4)
    forward = CalleePart.forward
    slow = workers[2].part(CapturedParts)
    late_parts = {id(part) for parts in slow._table._parts.values() for part in parts.values()}
    monkeypatch.setattr(
        CalleePart, "forward", lambda self, *args: (id(self) not in late_parts or go.wait(30)) and forward(self, *args)
    )
    try:
        rpc._set_rpc_timeout(0.2)
        with pytest.raises(RpcTimeoutError, match=r"forward on worker 'c'"):
            model.train(step, 1)
    finally:
        rpc._set_rpc_timeout(30)
        go.set()
    monkeypatch.undo()
    model.train(step, 4)
    assert replays(step) > 0


@pytest.mark.parametrize(("broken", "kind"), [("c", ArithmeticError), ("bc", RpcError), ("ac", RpcError)])
def test_errors_of_optimizers_are_those_of_eager_steps(workers, broken, kind):
    found = []
    for make in (lambda model: model.step, compiled):
        model = Model(chain, FailsWhereTold, "bc")
        step = make(model)
        model.train(step, 4)
        FailsWhereTold.broken = frozenset(broken)
        try:
            with pytest.raises(kind) as error:
                model.train(step, 1)
        finally:
            FailsWhereTold.broken = frozenset()
        found.append((str(error.value), model.train(step, 3), [each.tolist() for each in model.values()]))
    assert found[0] == found[1]
