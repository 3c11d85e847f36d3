"""Compiled steps whose callees call other workers: chains of parts, diamonds, several callers of one worker, and rings."""

import threading

import numpy as np
import pytest
import telegrad as tg
from helpers.captured_steps import FailsWhereTold, asked, check_same, filled, replays
from telegrad import autograd_dist, nn, rpc
from telegrad.autograd_dist.captured.callee import CalleePart, CalleeReplay
from telegrad.autograd_dist.captured.parts import CapturedParts
from telegrad.base.errors import RpcTimeoutError, WorkerLostError
from telegrad.optim import SGD, Adam
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.testing import in_process_cluster

STEPS = 8
SIZE = 4


@pytest.fixture(scope="module")
def workers():
    """Agents for all tests that end none."""
    with in_process_cluster(*"abcde", options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents


class Layer(nn.Module):
    """A layer that calls the ``next`` ones on other workers, if there are some."""

    def __init__(self, seed, next_ones=()):
        super().__init__()
        self.linear = filled(nn.Linear(SIZE, SIZE), seed)
        self.next, self.factor = list(next_ones), 1.0

    def here(self, x):
        return tg.tanh(self.linear(x)) * self.factor

    def forward(self, x):
        """Call the next layers one after the other."""
        h = self.here(x)
        for each in self.next:
            h = each.rpc_sync().forward(h)
        return h

    def around(self, x):
        """Use parameters and a result before and behind the calls."""
        h = self.here(x)
        for each in self.next:
            h = each.rpc_sync().around(h) + h
        return self.here(h) if self.next else h

    def side_by_side(self, x):
        h = self.here(x)
        futures = [each.rpc_async().forward(h) for each in self.next]
        return sum(each.wait() for each in futures)

    def two(self, x):
        """Return two results; of that of the next layer one is used."""
        h = self.here(x)
        for each in self.next:
            h = each.rpc_sync().two(h)[1]
        return h, h * 2

    def noisy(self, x):
        for each in self.next:
            return each.rpc_sync().noisy(self.here(x))
        return nn.functional.dropout(self.here(x), 0.25)

    def cut(self, x):
        """Let no gradient through."""
        for each in self.next:
            return each.rpc_sync().cut(self.here(x))
        return self.here(x.detach())

    def module(self, x):
        return rpc.rpc_sync("c", tg.mul, (self.here(x), 0.5)) + self.forward(x)

    def failing(self, x):
        for each in self.next:
            return each.rpc_sync().failing(self.here(x))
        if self.factor != 1.0:
            raise KeyError("told to fail")
        return self.here(x)

    def refs(self):
        return [tg.RRef(each) for each in self.parameters()]

    def numbers(self):
        return [each.detach().clone() for each in self.parameters()]

    def change(self, factor):
        self.factor = factor


class Model:
    """Layers on several workers, one on this one, and an optimizer; ``call`` gets the references and a tensor.

    Args:
        call: makes the calls.
        shape: for each layer, its worker and the places of those that it calls, which stand before it.
        kind: of the optimizer.
    """

    def __init__(self, call, shape, kind=SGD, **options):
        self.call, self.remotes = call, []
        for seed, (name, *places) in enumerate(shape, 1):
            next_ones = [self.remotes[place] for place in places]
            self.remotes.append(rpc.remote(name, Layer, (seed, next_ones)))
        self.first = filled(nn.Linear(SIZE, SIZE), 11)
        references = [tg.RRef(each) for each in self.first.parameters()]
        for remote in self.remotes:
            references += remote.rpc_sync().refs()
        self.optimizer = autograd_dist.DistributedOptimizer(kind, references, **(options or {"lr": 0.05}))
        self.data = tg.Generator().manual_seed(3)

    def step(self, x):
        with autograd_dist.context() as context:
            loss = (self.call(self.remotes, tg.tanh(self.first(x))) ** 2).mean()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def train(self, step, steps=STEPS):
        return [step(tg.randn(3, SIZE, generator=self.data)).item() for _ in range(steps)]

    def values(self):
        remote = [each for remote in self.remotes for each in remote.rpc_sync().numbers()]
        return [each.detach().numpy().copy() for each in (*self.first.parameters(), *remote)]


def last(name):
    """Return what calls a method of the last layer."""
    return lambda remotes, x: getattr(remotes[-1].rpc_sync(), name)(x)


def both(remotes, x):
    """Call the last layer and the first one, which the last one calls, too."""
    return last("forward")(remotes, x) + remotes[0].rpc_sync().forward(x)


def twice(remotes, x):
    """Call the last layer twice, side by side."""
    one, other = remotes[-1].rpc_async().forward(x), remotes[-1].rpc_async().forward(x * 2)
    return one.wait() + other.wait()


def crossed(remotes, x):
    """Call two layers that call one another's workers."""
    one, other = remotes[2].rpc_async().forward(x), remotes[3].rpc_async().forward(x)
    return one.wait() * other.wait()


def check_replayed(call, shape, kind=SGD, **options):
    """Check that compiled steps are as eager ones, and that nearly all are replays."""
    _, step = check_same(lambda: Model(call, shape, kind, **options))
    assert replays(step) >= STEPS - 2


TWO = ["c", ("b", 0)]
DEEP = ["e", ("d", 0), ("c", 1), ("b", 2)]
FORMS = {
    "chain": (last("forward"), TWO),
    "deep": (last("forward"), DEEP),
    "around": (last("around"), DEEP),
    "side by side": (last("side_by_side"), ["d", "c", ("b", 0, 1)]),
    "diamond": (last("side_by_side"), ["e", ("d", 0), ("c", 0), ("b", 1, 2)]),
    "one after the other": (last("forward"), ["d", "c", ("b", 0, 1)]),
    "both call": (both, TWO),
    "twice": (twice, TWO),
    "crossed": (crossed, ["c", "b", ("b", 0), ("c", 1)]),
    "function": (last("module"), TWO),
}


@pytest.mark.parametrize(("call", "shape"), FORMS.values(), ids=FORMS)
def test_the_bits_are_those_of_eager_steps(workers, call, shape):
    check_replayed(call, shape, lr=0.05, momentum=0.9)


def test_other_optimizers(workers):
    check_replayed(last("around"), DEEP, Adam, lr=0.01)


def test_each_hop_sends_two_requests(workers, monkeypatch):
    model = Model(last("forward"), DEEP)
    step = tg.compile(model.step)
    model.train(step, 3)
    sent = asked(monkeypatch)
    model.train(step, 1)
    assert (replays(step), sent) == (2, list("bcdebcde"))


def test_the_last_call_may_change_something(workers):
    losses = []
    for make in (lambda model: model.step, lambda model: tg.compile(model.step)):
        model = Model(last("noisy"), DEEP)
        step = make(model)
        tg.manual_seed(4)
        losses.append(model.train(step))
    assert losses[0] == losses[1]
    assert replays(step) == STEPS - 2


def test_backwards_of_one_worker_wait_for_others_at_the_same_time(workers, monkeypatch):
    """Two workers call one another's: a lock during the backward would let both wait for ever."""
    model = Model(crossed, FORMS["crossed"][1])
    step = tg.compile(model.step)
    model.train(step, 3)
    arrived, backward = threading.Barrier(2), CalleeReplay.backward
    first = {}  # by replay, whether it is the first message of its worker

    def wait(self, *args):
        if first.setdefault(id(self), True):
            first[id(self)] = False
            arrived.wait(30)
        return backward(self, *args)

    monkeypatch.setattr(CalleeReplay, "backward", wait)
    model.train(step, 1)
    assert replays(step) == 2


# -- what runs eagerly, and says why


def make_ring():
    return Model(last("forward"), ["b", ("c", 0), ("b", 1)])


def make_ring_to_the_caller():
    return Model(last("forward"), ["a", ("b", 0)])


def make_partly_used():
    return Model(lambda remotes, x: remotes[-1].rpc_sync().two(x)[0], TWO)


EAGER = {
    "ring": (make_ring, "round in a ring"),
    "ring to the caller": (make_ring_to_the_caller, "sends tensors in this context"),
    "no gradient back": (lambda: Model(last("cut"), TWO), "no gradients come back"),
    "partly used": (make_partly_used, "not all of its results"),
}


@pytest.mark.parametrize(("make", "reason"), EAGER.values(), ids=EAGER)
def test_what_runs_eagerly(workers, make, reason):
    eager, other = make(), make()
    step = tg.compile(other.step)
    with pytest.warns(UserWarning, match=reason) as told:
        losses = other.train(step)
    assert losses == eager.train(eager.step)
    assert len([each for each in told if each.category is UserWarning]) == 1


def test_a_result_of_a_nested_call_that_is_not_used(workers):
    """The last worker has no further calls, so one of its results need not get a gradient."""
    check_replayed(lambda remotes, x: sum(remotes[-1].rpc_sync().two(x)), TWO)


# -- what goes wrong


@pytest.mark.parametrize("place", [0, 1, 3])
def test_conditions_are_those_of_each_worker(workers, place):
    eager, other = [Model(last("forward"), DEEP) for _ in range(2)]
    step = tg.compile(other.step)
    losses = []
    for model, run in ((eager, eager.step), (other, step)):
        losses.append(model.train(run, 4))
        model.remotes[place].rpc_sync().change(0.5)
        losses[-1] += model.train(run, 6)
    assert losses[0] == losses[1]
    assert replays(step) >= 4
    for one, two in zip(eager.values(), other.values()):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("worker", [2, 4])
def test_a_part_is_known_no_more(workers, worker):
    eager, other = [Model(last("forward"), DEEP) for _ in range(2)]
    step = tg.compile(other.step)
    expected = eager.train(eager.step, 9)
    losses = other.train(step, 4)
    workers[worker].part(CapturedParts)._table.clear()
    assert losses + other.train(step, 5) == expected
    assert replays(step) >= 2  # of the new plan
    for one, two in zip(eager.values(), other.values()):
        np.testing.assert_array_equal(one, two)


def test_errors_of_functions(workers):
    found = []
    for make in (lambda model: model.step, lambda model: tg.compile(model.step)):
        model = Model(last("failing"), DEEP)
        step = make(model)
        losses = model.train(step, 4)
        model.remotes[0].rpc_sync().change(2.0)
        with pytest.raises(KeyError):
            model.train(step, 1)
        model.remotes[0].rpc_sync().change(1.0)
        found.append((losses, model.train(step, 4)))
    assert found[0] == found[1]
    assert replays(step) > 0


@pytest.mark.parametrize("broken", ["c", "b", "bc", "ac", "abc"])
def test_errors_of_optimizers_are_those_of_eager_steps(workers, broken):
    found = []
    for make in (lambda model: model.step, lambda model: tg.compile(model.step)):
        model = Model(last("forward"), TWO, FailsWhereTold, lr=0.05)
        step = make(model)
        model.train(step, 4)
        FailsWhereTold.broken = frozenset(broken)
        try:
            with pytest.raises(Exception) as error:
                model.train(step, 1)
        finally:
            FailsWhereTold.broken = frozenset()
        found.append((repr(error.value), model.train(step, 3), [each.tolist() for each in model.values()]))
    assert found[0] == found[1]


@pytest.mark.parametrize("backward", [False, True])
def test_a_lost_callee_of_a_callee(monkeypatch, backward):
    found = []
    for make in (lambda model: model.step, lambda model: tg.compile(model.step)):
        with in_process_cluster("a", "b", "c") as agents, agents[0].use():
            model = Model(last("forward"), TWO)
            step = make(model)
            model.train(step, 4)
            if backward and hasattr(step, "plans"):
                lose_before_gradients(agents, monkeypatch)
            else:
                agents[2].close("lost by the test")
            with pytest.raises(WorkerLostError, match="'c'") as error:
                model.train(step, 1)
            found.append(type(error.value))
            with pytest.raises(WorkerLostError, match="'c'"):
                model.train(step, 1)
    assert found[0] is found[1]


def lose_before_gradients(agents, monkeypatch):
    real, lost = CalleeReplay.backward, []

    def end(self, *args):
        if not lost:  # gradients come to the worker in the middle first
            lost.append(agents[2].close("lost by the test"))
        return real(self, *args)

    monkeypatch.setattr(CalleeReplay, "backward", end)


def test_the_deadline_of_the_first_call_holds_for_all(workers, monkeypatch):
    model = Model(last("forward"), DEEP)
    step, go, left = tg.compile(model.step), threading.Event(), []
    model.train(step, 4)
    forward = CalleePart.forward
    slow = workers[4].part(CapturedParts)
    late_parts = {id(part) for parts in slow._table._parts.values() for part in parts.values()}

    def late(self, *args):
        left.append(rpc.current_call().time_left)
        return (id(self) not in late_parts or go.wait(30)) and forward(self, *args)

    monkeypatch.setattr(CalleePart, "forward", late)
    try:
        rpc._set_rpc_timeout(0.3)
        with pytest.raises(RpcTimeoutError):
            model.train(step, 1)
    finally:
        rpc._set_rpc_timeout(30)
        go.set()
    monkeypatch.undo()
    assert len(left) == 4 and left == sorted(left, reverse=True) and left[0] <= 0.3
    model.train(step, 4)
    assert replays(step) > 0


# -- explanations


def test_the_picture_shows_hops_of_hops(workers, tmp_path):
    model = Model(last("forward"), DEEP)
    step = tg.compile(model.step)
    model.train(step, 3)
    lines = step.explain(tmp_path / "plan.svg").splitlines()
    hops = [line for line in lines if "hop " in line]
    starts = ["hop to 'b'", "hop from 'b' to 'c'", "hop from 'c' to 'd'", "hop from 'd' to 'e'"]
    assert [line.strip().split(":")[0] for line in hops] == starts
    indents = [len(line) - len(line.lstrip()) for line in hops]
    assert indents == sorted(set(indents))
    picture = (tmp_path / "plan.svg").read_text()
    places = [picture.index(f">{start.replace(chr(39), '&#x27;')}") for start in starts]
    assert places == sorted(places)
