"""Compiled steps that call a parameter server outside of autograd contexts: numbers and raw arrays in the place of names."""

import asyncio
import threading
import warnings

import numpy as np
import pytest
import telegrad as tg
from helpers.captured_steps import filled, replays
from telegrad import nn, rpc
from telegrad.autograd_dist.captured.parts import CapturedParts
from telegrad.base.errors import RpcError, RpcTimeoutError, WorkerLostError
from telegrad.optim import SGD, Adam
from telegrad.rpc.calls import codec
from telegrad.rpc.calls.caller import Caller
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.testing import in_process_cluster

STEPS = 20
SIZE = 4


@pytest.fixture(scope="module")
def workers():
    """Agents for all tests that end none."""
    with in_process_cluster("a", "b", "c", options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents


class Server:
    """Owner of parameters: it counts pushes, and gets gradients in messages."""

    def __init__(self, kind, options):
        self.net = filled(nn.Linear(SIZE, 1), 1)
        self.optimizer = kind(self.net.parameters(), **options)
        self.lock, self.pushes, self.wrong = threading.Lock(), 0, None
        self.go = threading.Event()
        self.go.set()

    def push(self, gradients):
        with self.lock:
            for parameter, gradient in zip(self.net.parameters(), gradients):
                parameter.grad = gradient
            self.optimizer.step()
            self.pushes += 1

    def pull(self):
        self.go.wait(30)
        if self.wrong is not None:
            return self.wrong
        return [each.detach().clone() for each in self.net.parameters()]

    def push_and_pull(self, gradients, scale=1.0):
        self.push([each * scale for each in gradients])
        return tuple(self.pull())

    async def pull_later(self):
        await asyncio.sleep(0)
        return self.pull()

    @rpc.functions.async_execution
    def pull_when_done(self):
        done = tg.futures.Future()
        done.set_result(self.pull())
        return done

    def state(self):
        return self.pushes, [each.tolist() for each in self.net.parameters()]

    def set(self, name, value):
        setattr(self, name, value)


SERVERS = {}


def hold(reference):
    SERVERS["one"] = reference.local_value()


class Trainer:
    """A copy of the parameters, which a step replaces by those of the server."""

    def __init__(self, exchange, kind=SGD, **options):
        self.exchange = exchange
        self.server = rpc.remote("b", Server, (kind, options or {"lr": 0.05, "momentum": 0.9}))
        self.net = nn.Linear(SIZE, 1)
        with tg.no_grad():
            for mine, theirs in zip(self.net.parameters(), self.server.rpc_sync().pull()):
                mine.copy_(theirs)
        self.data = tg.Generator().manual_seed(3)

    def step(self, x):
        self.net.zero_grad()
        loss = (self.net(x) ** 2).mean()
        loss.backward()
        fresh = self.exchange(self.server, [each.grad for each in self.net.parameters()])
        with tg.no_grad():
            for mine, theirs in zip(self.net.parameters(), fresh):
                mine.copy_(theirs)
        return loss.detach()

    def train(self, step, steps=STEPS):
        return [step(tg.randn(3, SIZE, generator=self.data)).item() for _ in range(steps)]

    def values(self):
        return self.server.rpc_sync().state(), [each.tolist() for each in self.net.parameters()]


def both(server, gradients):
    return server.rpc_sync().push_and_pull(gradients, scale=0.5)


def one_after_another(server, gradients):
    server.rpc_sync().push(gradients)
    return server.rpc_sync().pull()


def futures(server, gradients):
    server.rpc_async().push(gradients).wait()
    first, other = tg.futures.wait_all([server.rpc_async().pull_later(), server.rpc_async().pull_when_done()])
    return [(one + two) / 2 for one, two in zip(first, other)]


def by_function(server, gradients):
    server.rpc_sync().push([rpc.rpc_sync("b", tg.mul, (each, 2.0)) for each in gradients])
    return server.rpc_sync().pull()


def compiled(trainer):
    return tg.compile(trainer.step)


@pytest.mark.parametrize(
    ("exchange", "kind", "options"),
    [(both, SGD, {}), (one_after_another, Adam, {"lr": 0.01}), (futures, SGD, {}), (by_function, Adam, {"lr": 0.01})],
)
def test_the_bits_are_those_of_eager_steps(workers, exchange, kind, options):
    found = []
    for make in (lambda trainer: trainer.step, compiled):
        trainer = Trainer(exchange, kind, **options)
        step = make(trainer)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            found.append((trainer.train(step), trainer.values()))
    assert found[0] == found[1]
    assert replays(step) >= STEPS - 3
    assert "on 'b': number" in step.explain()


def test_a_replay_pickles_nothing(workers, monkeypatch):
    trainer = Trainer(one_after_another)
    step = compiled(trainer)
    trainer.train(step, 4)
    before, x = replays(step), tg.ones(3, SIZE)
    sent, pickled = [], []
    begin, pack = Caller.begin, codec.pack_pickled
    monkeypatch.setattr(Caller, "begin", lambda self, *args: (sent.append(args[1]), begin(self, *args))[1])
    monkeypatch.setattr(codec, "pack_pickled", lambda *args: (pickled.append(args[1]), pack(*args))[1])
    monkeypatch.setattr(codec.pickle, "dumps", lambda *args, **kwargs: pickled.append(args))
    step(x)
    assert (replays(step) - before, len(sent), pickled) == (1, 2, [])


def test_a_number_that_is_known_no_more_is_defined_again(workers):
    trainer, eager = Trainer(one_after_another), Trainer(one_after_another)
    step = compiled(trainer)
    losses = trainer.train(step, 6)
    workers[1].part(CapturedParts)._plain.table.clear()
    before = replays(step)
    assert losses + trainer.train(step, 4) == eager.train(eager.step, 10)
    assert replays(step) - before == 4
    assert trainer.values() == eager.values()


def test_a_server_that_does_something_else_runs_as_it_is(workers):
    former, found = Server.push, []
    for make in (lambda trainer: trainer.step, compiled):
        trainer = Trainer(one_after_another)
        step = make(trainer)
        losses = trainer.train(step, 4)
        Server.push = lambda self, gradients: former(self, [each * 2 for each in gradients])
        try:
            found.append((losses + trainer.train(step, 4), trainer.values()))
        finally:
            Server.push = former
    assert found[0] == found[1]


@pytest.mark.parametrize("wrong", [3, [tg.ones(2)], [tg.ones(2), tg.ones(1)], None])
def test_another_result_fails_and_the_step_is_recorded_anew(workers, wrong):
    trainer = Trainer(one_after_another)
    step = compiled(trainer)
    trainer.train(step, 4)
    trainer.server.rpc_sync().set("wrong", () if wrong is None else wrong)
    with pytest.raises(RpcError, match="recorded"):
        trainer.train(step, 1)
    trainer.server.rpc_sync().set("wrong", None)
    trainer.train(step, 4)
    assert replays(step) >= 1


def test_errors_are_those_of_eager_steps(workers):
    trainer = Trainer(one_after_another)
    step = compiled(trainer)
    trainer.train(step, 4)
    trainer.server.rpc_sync().set("optimizer", None)
    with pytest.raises(AttributeError, match="step"):
        trainer.train(step, 1)


def test_a_call_that_takes_too_long(workers):
    trainer = Trainer(one_after_another)
    step = compiled(trainer)
    trainer.train(step, 4)
    rpc.rpc_sync("b", hold, (trainer.server,))
    server = SERVERS["one"]
    server.go.clear()
    try:
        rpc._set_rpc_timeout(0.2)
        with pytest.raises(RpcTimeoutError, match=r"pull on worker 'b'"):
            trainer.train(step, 1)
    finally:
        rpc._set_rpc_timeout(30)
        server.go.set()


def test_a_lost_server():
    with in_process_cluster("a", "b") as agents, agents[0].use():
        trainer = Trainer(both)
        step = compiled(trainer)
        trainer.train(step, 4)
        agents[1].close("lost by the test")
        for _ in range(2):
            with pytest.raises(WorkerLostError, match="'b'"):
                trainer.train(step, 1)


REASONS = {
    "a number": (lambda server: server.rpc_sync().state()[0], "returned something else than tensors"),
    "its own worker": (lambda server: rpc.rpc_sync("a", tg.add, (tg.ones(1), 1.0)), "calls its own worker"),
    "by value": (lambda server: rpc.rpc_sync("b", lambda: tg.ones(1)), "travels by value"),
    "an unused future": (lambda server: server.rpc_async().pull(), "does not wait"),
}


@pytest.mark.parametrize(("call", "reason"), REASONS.values(), ids=REASONS)
def test_what_runs_eagerly(workers, call, reason):
    server = rpc.remote("b", Server, (SGD, {"lr": 0.1}))

    @tg.compile
    def step(x):
        call(server)
        return x * 2

    with pytest.warns(UserWarning, match=reason):
        for _ in range(3):
            step(tg.ones(2))


def test_numbers_are_forgotten_with_the_step(workers, until):
    import gc

    gc.collect()
    table = workers[1].part(CapturedParts)._plain.table
    trainer = Trainer(one_after_another)
    step = compiled(trainer)
    until(lambda: len(table) == 0)
    trainer.train(step, 4)
    assert len(table) == 2
    del step
    gc.collect()
    until(lambda: len(table) == 0)
    assert np.isfinite(trainer.train(trainer.step, 1)[0])


def caught(server):
    try:
        return server.rpc_sync().pull()
    except WorkerLostError:
        return None


def passed_on(server):
    with warnings.catch_warnings():
        return [each + 1 for each in server.rpc_sync().pull()]


@pytest.mark.parametrize(("call", "told"), [(caught, 1), (passed_on, 0)])
def test_a_step_that_catches_errors_of_its_call_runs_eagerly(workers, call, told):
    server = rpc.remote("b", Server, (SGD, {"lr": 0.1}))

    @tg.compile
    def step(x):
        return x * call(server)[1]

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        for _ in range(3):
            step(tg.ones(2))
    assert len([each for each in found if "in a try statement" in str(each.message)]) == told
