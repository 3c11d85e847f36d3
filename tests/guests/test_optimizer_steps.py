"""Steps of PyTorch's optimizers make no record for its profiler if it does not run, and call hooks all the same."""

import functools

import pytest
from telegrad import autograd_dist
from telegrad.autograd_dist import DistributedOptimizer, backward
from telegrad.rref import RRef

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

pytestmark = pytest.mark.usefixtures("workers")
SEEN = []


class Halving(torch.optim.SGD):
    """Optimizer of a user, of a class that PyTorch knows."""

    def step(self, closure=None):
        SEEN.append("halving")
        for group in self.param_groups:
            group["lr"] /= 2
        return super().step(closure)


class Patched(torch.optim.SGD):
    """Optimizer whose step something else has been put around."""


class Bare:
    """Optimizer of a user, of no class of PyTorch's."""

    def __init__(self, parameters, lr):
        self._parameters, self._lr = list(parameters), lr

    def step(self):
        with torch.no_grad():
            for parameter in self._parameters:
                parameter -= self._lr * parameter.grad


def make(kind):
    """Return a parameter of ones, and its optimizer."""
    SEEN.clear()
    parameter = torch.ones(3, requires_grad=True)
    optimizer = DistributedOptimizer(kind, [RRef(parameter)], lr=0.25)
    return parameter, optimizer


def train(parameter, optimizer):
    with autograd_dist.context() as context:
        backward(context, [parameter.sum()])
        optimizer.step(context)
    return parameter.detach()[0].item()


def of_torch(optimizer):
    """Return the optimizer of PyTorch on this worker."""
    return optimizer.remote_optimizers[0].local_value().optimizer


@pytest.fixture
def records(monkeypatch):
    """Return the names of the records that are made for PyTorch's profiler."""
    names = []
    plain = torch.autograd.profiler.record_function

    def record(name, *args):
        names.append(name)
        return plain(name, *args)

    monkeypatch.setattr(torch.autograd.profiler, "record_function", record)
    return names


@pytest.mark.parametrize(("kind", "value"), [(torch.optim.SGD, 0.75), (Halving, 0.875), (Bare, 0.75)])
def test_a_step_makes_no_record_for_a_profiler_that_does_not_run(records, kind, value):
    parameter, optimizer = make(kind)
    assert train(parameter, optimizer) == value
    assert records == (["Optimizer.step#Halving.step"] if SEEN else [])  # its own call of SGD's step is the user's


def test_a_step_is_recorded_for_a_profiler_that_runs(records):
    parameter, optimizer = make(torch.optim.SGD)
    with torch.autograd.profiler.profile() as profile:
        train(parameter, optimizer)
    assert records == ["Optimizer.step#SGD.step"]
    assert "Optimizer.step#SGD.step" in {event.name for event in profile.function_events}


@pytest.mark.parametrize(
    "register",
    [
        lambda optimizer, hook: optimizer.register_step_pre_hook(hook),
        lambda optimizer, hook: optimizer.register_step_post_hook(hook),
        lambda _, hook: register_optimizer_step_pre_hook(hook),
        lambda _, hook: register_optimizer_step_post_hook(hook),
    ],
    ids=["before", "after", "before any", "after any"],
)
def test_hooks_are_called(register):
    parameter, optimizer = make(torch.optim.SGD)
    handle = register(of_torch(optimizer), lambda *_: SEEN.append("hook"))
    try:
        assert train(parameter, optimizer) == 0.75
    finally:
        handle.remove()
    assert train(parameter, optimizer) == 0.5
    assert SEEN == ["hook"]


def test_what_was_put_around_a_step_is_called(monkeypatch):
    parameter, optimizer = make(Patched)
    former = Patched.step

    @functools.wraps(former)
    def around(self, *args):
        SEEN.append("class")
        return former(self, *args)

    monkeypatch.setattr(Patched, "step", around)
    assert train(parameter, optimizer) == 0.75
    mine = of_torch(optimizer)
    monkeypatch.setattr(mine, "step", lambda: SEEN.append("instance"), raising=False)
    assert train(parameter, optimizer) == 0.75
    assert SEEN == ["class", "instance"]


def test_a_scheduler_sees_the_steps(recwarn):
    parameter, optimizer = make(torch.optim.SGD)
    scheduler = optimizer.schedule(torch.optim.lr_scheduler.StepLR, 1, 0.5)
    values = []
    for _ in range(3):
        values.append(train(parameter, optimizer))
        scheduler.step()
    assert values == [0.75, 0.625, 0.5625]
    assert not [warning for warning in recwarn if "lr_scheduler" in str(warning.message)]
