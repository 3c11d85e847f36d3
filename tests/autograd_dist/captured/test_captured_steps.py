"""Compiled steps with a call of another worker: the same bits as eager ones, the same errors, and reasons for eager calls."""

import gc
import threading
import warnings

import numpy as np
import pytest
import telegrad as tg
from helpers.captured_steps import check_same, replays
from telegrad import autograd_dist, nn, optim, rpc
from telegrad.autograd_dist.captured.parts import CalleePart, CapturedParts
from telegrad.base.errors import ArgumentTypeError, RpcError, RpcTimeoutError, WorkerLostError
from telegrad.optim import SGD, Adam
from telegrad.rpc.calls import codec
from telegrad.rpc.calls.caller import Caller
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.testing import in_process_cluster

STEPS = 20


@pytest.fixture
def workers():
    """Three agents; one test calls over sockets."""
    with in_process_cluster("a", "b", "c", options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents


class Owner:
    """Layers on another worker."""

    calls = 0

    def __init__(self):
        generator = tg.Generator().manual_seed(1)
        self.net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
        for each in self.net.parameters():
            each.data = tg.randn(*each.shape, generator=generator)

    def forward(self, x):
        return self.net(x)

    def both(self, x, scale=1.0):
        return self.net(x), (x * scale).sum(1)

    def counted(self, x):
        self.calls += 1
        return self.net(x)

    def fails(self, x, how):
        return self.net(x) + nn.functional.embedding(how, self.net[2].weight).sum()

    def parameters(self):
        return [tg.RRef(each) for each in self.net.parameters()]

    def values(self):
        return [each.detach().clone() for each in self.net.parameters()]

    def change(self, code):
        exec(code, {"self": self, "tg": tg, "nn": nn})


HELD: dict[str, Owner] = {}


def by_name(x):
    """Call what the owner holds."""
    return HELD["owner"].forward(x)


def hold(owner):
    HELD["owner"] = owner.local_value()


class Job:
    """A model of two workers, and its optimizer; ``call`` gets the owner and a tensor, and calls the other worker."""

    def __init__(self, call, kind=SGD, mine=True, **options):
        self.call = call
        self.remote = rpc.remote("b", Owner)
        self.remote.rpc_sync().values()
        generator = tg.Generator().manual_seed(2)
        self.first, self.last = nn.Linear(6, 4), nn.Linear(3, 2)
        self.own = [*self.first.parameters(), *self.last.parameters()]
        for each in self.own:
            each.data = tg.randn(*each.shape, generator=generator)
        references = self.remote.rpc_sync().parameters() + [tg.RRef(each) for each in self.own if mine]
        self.optimizer = autograd_dist.DistributedOptimizer(kind, references, **(options or {"lr": 0.1}))
        self.data = tg.Generator().manual_seed(3)

    def step(self, x, y):
        with autograd_dist.context() as context:
            arrived = self.call(self.remote, tg.tanh(self.first(x)))
            loss = ((self.last(arrived) - y) ** 2).mean()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def batch(self, rows=8):
        return tg.randn(rows, 6, generator=self.data), tg.randn(rows, 2, generator=self.data)

    def train(self, step, steps=STEPS):
        return [step(*self.batch()).item() for _ in range(steps)]

    def values(self):
        return [each.detach().numpy().copy() for each in (*self.own, *self.remote.rpc_sync().values())]


def by_method(remote, x):
    return remote.rpc_sync().forward(x)


def by_function(remote, x):
    return rpc.rpc_sync("b", by_name, (x,))


def compiled(job):
    return tg.compile(job.step)


def check_replayed(make, plans=1, least=STEPS - 2):
    """Check that compiled steps are as eager ones, that there are so many plans, and at least so many replays."""
    other, step = check_same(make)
    assert len(step.plans()) == plans
    assert replays(step) >= least
    return other, step


@pytest.mark.parametrize(("kind", "options"), [(SGD, {"lr": 0.01, "momentum": 0.9}), (Adam, {"lr": 0.01})])
def test_a_method_of_a_reference(cluster, kind, options):
    with cluster("a", "b") as agents, agents[0].use():
        _, step = check_replayed(lambda: Job(by_method, kind, **options))
    assert "hop to 'b'" in step.explain()
    assert "2 round trips" in step.explain()


def test_a_function(workers):
    def make():
        job = Job(by_function)
        rpc.rpc_sync("b", hold, (job.remote,))
        return job

    eager = make()
    losses, values = eager.train(eager.step), eager.values()
    other = make()
    step = compiled(other)
    assert other.train(step) == losses
    for one, two in zip(values, other.values()):
        np.testing.assert_array_equal(one, two)
    assert replays(step) == STEPS - 2
    HELD.clear()


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.owner = Owner()
        self.net = self.owner.net

    def forward(self, x):
        return self.net(x)


def test_a_remote_module(workers):
    def make():
        module = tg.RemoteModule("b", Module)
        job = Job(lambda remote, x: module(x))
        references = module.remote_parameters() + [tg.RRef(each) for each in job.own]
        job.optimizer = autograd_dist.DistributedOptimizer(SGD, references, lr=0.1)
        return job

    check_replayed(make)


def test_several_results_and_named_numbers(workers):
    def call(remote, x):
        scores, sums = remote.rpc_sync().both(x, scale=0.5)
        return scores * sums.unsqueeze(1)

    check_replayed(lambda: Job(call))


def test_a_skip_around_the_call_and_two_roots(workers):
    class Skipping(Job):
        def step(self, x, y):
            with autograd_dist.context() as context:
                h = tg.tanh(self.first(x))
                arrived = self.call(self.remote, h)
                loss = ((self.last(arrived + h[:, :3]) - y) ** 2).mean() + (h**2).mean()
                autograd_dist.backward(context, [loss, (self.first.weight**2).sum() * 0.01])
                self.optimizer.step(context)
            return loss.item()

        def train(self, step, steps=STEPS):
            return [step(*self.batch()) for _ in range(steps)]

    check_replayed(lambda: Skipping(by_method))


def test_hogwild(workers):
    check_replayed(lambda: Job(by_method, lr=0.01, hogwild=True))


class Noisy(nn.Module):
    """Layers that draw random numbers and have running statistics."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.3), Module())

    def forward(self, x):
        return self.layers(x)


def test_a_callee_that_draws_numbers_and_has_running_statistics(workers):
    module = tg.RemoteModule("b", Noisy)

    def run(make):
        job = Job(lambda remote, x: module(x), lr=0.01)
        rpc.rpc_sync("b", reset, (module.module_rref,))
        losses = job.train(make(job))
        return losses, rpc.rpc_sync("b", statistics, (module.module_rref,))

    (losses, means), (others, other_means) = run(lambda job: job.step), run(compiled)
    assert losses == others
    assert means == other_means


def reset(reference):
    tg.manual_seed(5)
    reference.local_value().layers[0].reset_running_stats()


def statistics(reference):
    norm = reference.local_value().layers[0]
    return norm.running_mean.tolist(), int(norm.num_batches_tracked)


def test_an_optimizer_of_the_callee_alone(workers):
    check_replayed(lambda: Job(by_method, mine=False))


def test_several_shapes(workers):
    class Varied(Job):
        def train(self, step, steps=STEPS):
            return [step(*self.batch(3 + number % 2)).item() for number in range(steps)]

    check_replayed(lambda: Varied(by_method), plans=2, least=STEPS - 4)


def trained(job):
    step = compiled(job)
    job.train(step, 4)
    assert replays(step) == 2, step.explain()
    return step


def same_after(job, step, change, steps=6):
    """Train further, and as an eager job does that is changed in the same way."""
    eager = Job(job.call)
    eager.train(eager.step, 4)
    for each in (job, eager):
        change(each)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert job.train(step, steps) == eager.train(eager.step, steps)
    for one, two in zip(eager.values(), job.values()):
        np.testing.assert_array_equal(one, two)


CHANGES = {
    "other code": "type(self).forward = lambda self, x: self.net(x) * 2",
    "another module": "self.net[1] = nn.ReLU()",
    "another parameter": "self.net[0].bias = nn.Parameter(tg.ones(5))",
    "no gradient": "self.net[0].weight.requires_grad_(False)",
}


@pytest.mark.parametrize("code", CHANGES.values(), ids=CHANGES)
def test_the_callee_changes(workers, code):
    former = Owner.forward
    try:
        job = Job(by_method)
        step = trained(job)

        def change(each):
            Owner.forward = former
            each.remote.rpc_sync().change(code)

        eager = Job(by_method)
        eager.train(eager.step, 4)
        Owner.forward = former
        change(eager)
        expected = eager.train(eager.step, 6)
        change(job)
        assert job.train(step, 6) == expected
        assert replays(step) > 2  # a new plan
    finally:
        Owner.forward = former


def test_the_caller_s_plan_is_known_there_no_more(workers):
    job = Job(by_method)
    step = trained(job)
    workers[1].part(CapturedParts)._table.clear()
    same_after(job, step, lambda each: None)
    assert replays(step) == 4  # of a new plan, after two recordings


def test_a_replay_sends_two_requests_and_no_pickle(workers, monkeypatch):
    job = Job(by_method)
    step = trained(job)
    batch = job.batch()
    sent, pickled = [], []
    begin, pack = Caller.begin, codec.pack_pickled
    monkeypatch.setattr(Caller, "begin", lambda self, *args: (sent.append(args[1]), begin(self, *args))[1])
    monkeypatch.setattr(codec, "pack_pickled", lambda *args: (pickled.append(args[1]), pack(*args))[1])
    monkeypatch.setattr(codec.pickle, "dumps", lambda *args, **kwargs: pickled.append(args))
    step(*batch)
    assert replays(step) == 3
    assert (len(sent), pickled) == (2, [])


REASONS = {
    "an unused call": (lambda remote, x: (by_method(remote, x), by_method(remote, x))[0], "no gradients come back"),
    "state": (lambda remote, x: remote.rpc_sync().counted(x), "worker 'b': the call changes what it reads"),
    "another future": (
        lambda remote, x: remote.rpc_async().forward(x).then(lambda each: each.value()).wait(),
        "does not wait for the result",
    ),
    "wait() with a time-out": (lambda remote, x: remote.rpc_async().forward(x).wait(30), "with a time-out"),
    "an object": (lambda remote, x: remote.rpc_sync().both(x, np.ones(()))[0], "is a ndarray"),
}


@pytest.mark.parametrize(("call", "reason"), REASONS.values(), ids=REASONS)
def test_other_forms_run_eagerly_and_say_why_once(workers, call, reason):
    eager, job = Job(call, lr=0.001), Job(call, lr=0.001)
    step = compiled(job)
    with pytest.warns(UserWarning, match=reason) as told:
        losses = job.train(step, 10)
    assert losses == eager.train(eager.step, 10)
    assert len([each for each in told if each.category is UserWarning]) == 1


def test_a_context_without_a_step(workers):
    job = Job(by_method)

    @tg.compile
    def step(x):
        with autograd_dist.context() as context:
            loss = job.call(job.remote, tg.tanh(job.first(x))).sum()
            autograd_dist.backward(context, [loss])
        return loss.detach()

    with pytest.warns(UserWarning, match=r"ends without backward\(\) and DistributedOptimizer.step"):
        for _ in range(3):
            step(job.batch()[0])


def test_a_scheduler_inside(workers):
    job = Job(by_method)
    scheduler = job.optimizer.schedule(optim.lr_scheduler.StepLR, 1)

    @tg.compile
    def step(x):
        with autograd_dist.context() as context:
            autograd_dist.backward(context, [job.call(job.remote, tg.tanh(job.first(x))).sum()])
            job.optimizer.step(context)
            scheduler.step()

    with pytest.warns(UserWarning, match="steps a scheduler"):
        for _ in range(3):
            step(job.batch()[0])


def test_a_scheduler_outside(workers):
    class Scheduled(Job):
        def train(self, step, steps=STEPS):
            scheduler = self.optimizer.schedule(optim.lr_scheduler.StepLR, 2)
            losses = []
            for _ in range(steps):
                losses += Job.train(self, step, 1)
                scheduler.step()
            return losses

    check_replayed(lambda: Scheduled(by_method))


def test_a_plan_of_two_workers_is_drawn_and_not_saved(workers, tmp_path):
    step = trained(Job(by_method))
    step.explain(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    with pytest.raises(ArgumentTypeError, match="cannot be saved"):
        step.plans()[-1].save(tmp_path / "step.plan")


def test_inside_another_context_it_raises_as_eager_code_does(workers):
    job = Job(by_method)
    step = trained(job)
    with autograd_dist.context(), pytest.raises(RpcError, match="you are in autograd context"):
        step(*job.batch())
    assert replays(step) == 2, step.explain()


def test_two_threads(workers, thread):
    job = Job(by_method, lr=0.0)
    step, batch = trained(job), job.batch()
    expected, found = step(*batch).item(), []

    def run():
        with workers[0].use():
            found.extend(step(*batch).item() for _ in range(5))

    threads = [thread(run) for _ in range(3)]
    for each in threads:
        each.join(30)
    assert found == [expected] * 15


# -- errors


class Failing(SGD):
    """An optimizer whose step fails if it is told to."""

    broken = False

    def step(self, closure=None):
        if Failing.broken:
            raise ArithmeticError("no step")
        return super().step()


def test_an_error_of_the_callee_s_optimizer(workers):
    values = []
    for make in (lambda job: job.step, compiled):
        job = Job(by_method, Failing)
        step = make(job)
        job.train(step, 4)
        Failing.broken = True
        try:
            with pytest.raises(ArithmeticError, match="no step"):
                step(*job.batch())
        finally:
            Failing.broken = False
        job.train(step, 2)
        values.append(job.values())
    for one, two in zip(*values):
        np.testing.assert_array_equal(one, two)


def test_a_lost_callee():
    for make in (lambda job: job.step, compiled):
        with in_process_cluster("a", "b") as agents, agents[0].use():
            job = Job(by_method)
            step = make(job)
            job.train(step, 4)
            agents[1].close("lost by the test")
            with pytest.raises(WorkerLostError, match="'b'"):
                step(*job.batch())
            if step is not job.step:
                with pytest.raises(WorkerLostError, match="'b'"):
                    step(*job.batch())


def test_a_call_that_takes_too_long(workers, monkeypatch):
    job = Job(by_method)
    step, go = trained(job), threading.Event()
    forward = CalleePart.forward
    monkeypatch.setattr(CalleePart, "forward", lambda *args: go.wait(30) and forward(*args))
    try:
        rpc._set_rpc_timeout(0.05)
        with pytest.raises(RpcTimeoutError, match="forward on worker 'b'"):
            step(*job.batch())
    finally:
        rpc._set_rpc_timeout(30)
        go.set()
    monkeypatch.undo()
    job.train(step, 4)
    assert replays(step) > 0


def test_parts_are_forgotten_with_the_step(workers, until):
    job = Job(by_method)
    step = trained(job)
    parts = workers[1].part(CapturedParts)
    until(lambda: len(parts._table) == 1)  # those of the plans that it replaced are forgotten by messages
    del step
    gc.collect()
    until(lambda: len(parts._table) == 0)
    # What is compiled is in cycles, and a thread may still be in the call that forgot it.
    until(lambda: gc.collect() >= 0 and len(parts._compiled) == 0)
