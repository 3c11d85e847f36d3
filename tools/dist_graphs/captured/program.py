"""Random steps, as data: calls of other workers, what each computes there, and what changes between the steps."""

from __future__ import annotations

import random
from dataclasses import dataclass

STEPS = 10
MOST_LAYERS = 3
MOST_CALLS = 4
LAYERS = ("add", "product", "sine", "matrices", "mean", "normalized", "gate")
RARE_LAYERS = ("in place", "hooked", "looked up")  # not recorded
COMMON_WAYS = ("method", "function", "module", "deep")
OTHER_WAYS = ("future", "function's future", "reference", "nested", "promise", "two results", "counted", "looks")
OF_WORKERS = ("code", "function", "forget")
OF_LAYERS = ("scale", "replace", "freeze", "fails", "factor", "layers")  # of a callee, or of the caller
CHANGES = (*OF_WORKERS, *OF_LAYERS, *(f"own {name}" for name in OF_LAYERS), "rows")
FIRST_CHANGE = 3  # no change before this step, so that there is a plan


@dataclass(frozen=True)
class RemoteCall:
    """Call of another worker.

    Attributes:
        at: rank of that worker.
        way: how it is called.
        layers: names of the operations there.
        to: rank of the worker that is called from there, in some ways.
        onward: ranks and operations of the layers that are called from there, one by the other, if the way is "deep".
        fork: whether the first one calls all the others, side by side.
        skip: whether its result is added to what was sent. Not of calls side by side: three gradients are added up in the order
            in which they arrive.
    """

    at: int
    way: str
    layers: tuple[str, ...]
    to: int
    skip: bool
    onward: tuple[tuple[int, tuple[str, ...]], ...] = ()
    fork: bool = False


@dataclass(frozen=True)
class StepProgram:
    """Program of a random step.

    Attributes:
        seed: it decides everything.
        calls: of other workers.
        groups: their numbers in order: those of two that get the same tensor, and whose results are added up, or of one.
        own: names of the operations on the first worker, before the calls.
        optimizer: name of its class.
        owners: parameters in the optimizer: "all", those of the "callees", or the caller's "own".
        passes: how many backward passes there are.
        rows: of the arguments, by step.
        changes: names of the changes before each step.
    """

    seed: int
    calls: tuple[RemoteCall, ...]
    groups: tuple[tuple[int, ...], ...]
    own: tuple[str, ...]
    optimizer: str
    owners: str
    passes: int
    rows: tuple[int, ...]
    changes: tuple[tuple[str, ...], ...]

    @property
    def layers(self) -> list[tuple[int, tuple[str, ...]]]:
        """Ranks and operations of the layers on other workers: those of the calls, and those that are called from there."""
        deep = [each for call in self.calls for each in call.onward]
        return [*((call.at, call.layers) for call in self.calls), *deep]

    def onward(self, number: int) -> range:
        """Return the numbers of the layers that are called from those of a call."""
        first = len(self.calls) + sum(len(call.onward) for call in self.calls[:number])
        return range(first, first + len(self.calls[number].onward))

    @property
    def draws(self) -> bool:
        """Return whether it draws random numbers."""
        return "dropped" in {*self.own, *(name for _, names in self.layers for name in names)}


def make_program(seed: int, workers: int) -> StepProgram:
    """Return the step of a seed.

    Args:
        seed: decides everything but the number of workers.
        workers: number of workers.
    """
    rng = random.Random(f"step {seed}")
    count = rng.choice((1, 1, 1, 1, 2, 2, 3, MOST_CALLS))
    changing = rng.sample(CHANGES, rng.choice((1, 1, 2))) if rng.random() < 0.6 else []
    together = rng.choice((1, 2))
    groups = tuple(tuple(range(first, min(first + together, count))) for first in range(0, count, together))
    return StepProgram(
        seed,
        tuple(_call(rng, workers, len(group) == 1) for group in groups for _ in group),
        groups,
        _layers(rng, LAYERS),
        rng.choice(("SGD", "Adam", "momentum")),
        rng.choice(("all", "all", "all", "callees", "own")),
        2 if rng.random() < 0.05 else 1,
        tuple(2 + step % 2 if "rows" in changing else 4 for step in range(STEPS)),
        tuple(tuple(each for each in changing if step >= FIRST_CHANGE and rng.random() < 0.3) for step in range(STEPS)),
    )


def _call(rng: random.Random, workers: int, alone: bool) -> RemoteCall:
    way = rng.choice(COMMON_WAYS if rng.random() < 0.75 else OTHER_WAYS)
    names = LAYERS + (("dropped",) if rng.random() < 0.3 else ()) + (RARE_LAYERS if rng.random() < 0.1 else ())
    at, to = rng.randrange(1, workers), rng.randrange(workers)
    others = [rank for rank in range(workers) if rank != at and (rank or rng.random() < 0.1)]
    onward = rng.sample(others, min(rng.choice((1, 1, 2, 3)), len(others))) if way == "deep" else []
    skip, fork = alone and rng.random() < 0.3, len(onward) == 2 and rng.random() < 0.5
    deep = tuple((rank, _layers(rng, LAYERS)) for rank in onward)
    return RemoteCall(at, way, _layers(rng, names), to, skip, deep, fork)


def _layers(rng: random.Random, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(rng.choice(names) for _ in range(rng.randint(1, MOST_LAYERS)))
