"""Cost of a replayed step, counted in calls of Python functions at both workers."""

from __future__ import annotations

from functools import partial

import telegrad as tg
from helpers.all_calls import fewest_calls
from telegrad import rpc


class Layers(tg.nn.Module):
    """Two layers and an activation, at the other worker."""

    def __init__(self):
        super().__init__()
        self.layers = tg.nn.Sequential(tg.nn.Linear(4, 4), tg.nn.Tanh(), tg.nn.Linear(4, 4))

    def forward(self, x):
        return self.layers(x)


def make_step():
    remote, head = tg.RemoteModule("b", Layers), tg.nn.Linear(4, 1)
    parameters = remote.remote_parameters() + [rpc.RRef(each) for each in head.parameters()]
    optimizer = tg.DistributedOptimizer(tg.optim.SGD, parameters, lr=0.1)

    @tg.compile
    def step(x):
        with tg.autograd_dist.context() as context:
            loss = head(remote(x)).sum()
            tg.autograd_dist.backward(context, [loss])
            optimizer.step(context)
        return loss.detach()

    return step


def test_a_replayed_hop_makes_few_calls_at_both_workers():
    """356 with Python 3.11."""
    packages = ("autograd_dist", "capture", "core", "optim")  # calls of the others depend on what else runs
    least = fewest_calls(lambda: partial(make_step(), tg.randn(8, 4)), 20, packages)
    assert least.total() < 380, least
