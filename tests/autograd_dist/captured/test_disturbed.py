"""Recordings of a callee that steps of other workers disturb: they are made again."""

import warnings

import telegrad as tg
from telegrad import autograd_dist, optim, rpc
from telegrad.capture.errors import DISTURBED, Unrecordable
from telegrad.capture.names import Names
from telegrad.testing import in_process_cluster


class Owner:
    def __init__(self):
        self.weight = tg.ones(3, requires_grad=True)

    def forward(self, x):
        return (x * self.weight).tanh()

    def parameters(self):
        return [tg.RRef(self.weight)]


def test_a_disturbed_recording_of_a_callee_is_made_again(monkeypatch):
    left, check = [3], Names.check

    def disturbed(self):
        left[0] -= 1
        if left[0] >= 0:
            raise Unrecordable(DISTURBED)
        check(self)

    with in_process_cluster("a", "b") as agents, agents[0].use():
        remote = rpc.remote("b", Owner)
        optimizer = autograd_dist.DistributedOptimizer(optim.SGD, remote.rpc_sync().parameters(), lr=0.1)

        @tg.compile
        def step(x):
            with autograd_dist.context() as context:
                loss = remote.rpc_sync().forward(x).sum()
                autograd_dist.backward(context, [loss])
                optimizer.step(context)
            return loss.detach()

        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            step(tg.ones(3))  # the first recording is never one of a plan
            monkeypatch.setattr("telegrad.autograd_dist.captured.parts.QuietlyCompiled._record", record(disturbed))
            for _ in range(12):
                step(tg.ones(3))
        assert left[0] < 0
        assert sum(plan.replays for plan in step.plans()) > 0, step.explain()


def record(disturbed):
    """Return a method that records while other threads change tensors."""
    from telegrad.autograd_dist.captured.parts import QuietlyCompiled

    real = QuietlyCompiled._record

    def recorded(self, *args):
        check, Names.check = Names.check, disturbed
        try:
            return real(self, *args)
        finally:
            Names.check = check

    return recorded
