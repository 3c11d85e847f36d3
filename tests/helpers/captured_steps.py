"""Modules and optimizers of the tests of compiled steps across workers, and what these look at."""

import warnings

import numpy as np
import telegrad as tg
from telegrad import rpc
from telegrad.optim import SGD
from telegrad.rpc.calls.caller import Caller


def filled(module, seed):
    """Return a module whose parameters are the same in whatever thread it is made."""
    generator = tg.Generator().manual_seed(seed)
    for each in module.parameters():
        each.data = tg.randn(*each.shape, generator=generator) * 0.5
    return module


class FailsWhereTold(SGD):
    """An optimizer whose step fails at the workers that it is told."""

    broken: frozenset[str] = frozenset()

    def step(self, closure=None):
        if rpc.get_worker_info().name in FailsWhereTold.broken:
            raise ArithmeticError(f"no step at {rpc.get_worker_info().name}")
        return super().step()


def replays(step):
    """Return how many calls of a compiled step were replays."""
    return sum(plan.replays for plan in step.plans())


def check_same(make, *steps):
    """Train one model eagerly and one compiled: the losses and parameters are equal; return the latter and its step.

    Args:
        make: makes a model, which has ``step``, ``train(step, *steps)`` and ``values()``.
        steps: how many there are; none for the model's own number.
    """
    eager, other = make(), make()
    step = tg.compile(other.step)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert other.train(step, *steps) == eager.train(eager.step, *steps)
    for one, two in zip(eager.values(), other.values()):
        np.testing.assert_array_equal(one, two)
    return other, step


def asked(monkeypatch):
    """Return a list that gets the name of the worker of each request from now on."""
    sent, begin = [], Caller.begin
    monkeypatch.setattr(
        Caller, "begin", lambda self, peer, *args: (sent.append(peer.info.name), begin(self, peer, *args))[1]
    )
    return sent
