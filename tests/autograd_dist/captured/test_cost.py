"""Cost of a replayed step, counted in calls of Python functions at both workers."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter

import telegrad as tg
from telegrad import rpc
from telegrad.testing import in_process_cluster

ROOT = os.path.dirname(tg.__file__) + os.sep
PACKAGES = ("autograd_dist", "capture", "core", "optim")  # calls of the others depend on what else runs
STEPS = 20


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
    counted, least = Counter(), Counter({"warm-up": 1000})

    def profile(frame, event, _):
        if event == "call":
            folder, _, file = frame.f_code.co_filename.removeprefix(ROOT).partition(os.sep)
            if folder in PACKAGES:
                counted[f"{folder}/{file}:{frame.f_code.co_name}"] += 1

    threading.setprofile(profile)  # of threads that begin from now on
    sys.setprofile(profile)
    try:
        with in_process_cluster("a", "b") as (a, _), a.use():
            step, x = make_step(), tg.randn(8, 4)
            for _ in range(STEPS):
                counted.clear()
                step(x)
                least = min(least, counted.copy(), key=Counter.total)
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    assert least.total() < 380, least
