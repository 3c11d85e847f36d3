"""Modules and optimizers of the tests of compiled steps across workers."""

import telegrad as tg
from telegrad import rpc
from telegrad.optim import SGD


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
