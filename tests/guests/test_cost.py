"""Cost of a step of PyTorch's modules on two workers, counted in calls of Python functions at both."""

import os
import sys
import threading
from collections import Counter

import pytest
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.testing import in_process_cluster

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch

ROOT = os.path.dirname(tg.__file__) + os.sep
PACKAGES = ("autograd_dist", "core", "rpc", "rref")
APART = ("lanes", "links", "threads")  # depend on what else runs
STEPS = 25


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
    counted, least = Counter(), Counter({"warm-up": 2000})

    def profile(frame, event, _):
        if event == "call":
            folder, _, file = frame.f_code.co_filename.removeprefix(ROOT).partition(os.sep)
            if folder in PACKAGES and not file.startswith(APART):
                counted[f"{folder}/{file}:{frame.f_code.co_name}"] += 1

    threading.setprofile(profile)  # of threads that begin from now on
    sys.setprofile(profile)
    try:
        with in_process_cluster("a", "b") as (a, _), a.use():
            step = make_step()
            for _ in range(STEPS):
                counted.clear()
                step()
                least = min(least, counted.copy(), key=Counter.total)
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    assert least.total() < 670, least
