"""Cost of a step of PyTorch's modules on two workers, counted in calls of Python functions at both."""

import pytest
import telegrad as tg
from helpers.all_calls import fewest_calls
from telegrad import autograd_dist, rpc

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch


class Layers:
    """Two layers and an activation, at the other worker."""

    def __init__(self):
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))

    def forward(self, hidden):
        return self.layers(hidden)

    def parameters(self):
        return [rpc.RRef(parameter) for parameter in self.layers.parameters()]


def make_step():
    layer, rest = torch.nn.Linear(3, 4), rpc.remote("b", Layers)
    parameters = [rpc.RRef(parameter) for parameter in layer.parameters()] + rest.rpc_sync().parameters()
    optimizer, x = tg.DistributedOptimizer(torch.optim.SGD, parameters, lr=0.05), torch.ones(2, 3)

    def step():
        with autograd_dist.context() as context:
            loss = rest.rpc_sync().forward(torch.tanh(layer(x))).sum()
            autograd_dist.backward(context, [loss])
            optimizer.step(context)

    return step


def test_a_step_on_two_workers_makes_few_calls():
    """604 with Python 3.11."""
    least = fewest_calls(make_step, 25, ("autograd_dist", "core", "rpc", "rref"), ("lanes", "links", "threads"))
    assert least.total() < 670, least
