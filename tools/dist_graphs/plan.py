"""Random expressions, as data: leaves on several workers, and operations, each on some worker and called in some way."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .operations import DETACHING, OF_LEAVES, OPERATIONS, SPARSE

SHAPE = (4, 3)
MOST_STEPS = 12
MOST_LEAVES = 8  # of a tree
WAYS = ("here", "call", "reference", "async function", "promise", "proxy", "method", "object", "on and on", "changed")
SMART_WAYS = ("future",)  # the caller gets a result that it may not use, and its gradient is needed in "fast" mode
BLOCKING_WAYS = ("rpc_sync", "to_here")  # not in the simulator, whose single thread cannot block
MESH_WAYS = ("sum", "mean", "values", "sharded")  # of calls on a mesh; not in other libraries, which travel one by one
BLOCKING_MESH_WAYS = ("objects",)
MOST_IN_MESH = SHAPE[0]  # each gets a row or more of a sharded tensor
IN_PLACE_WAYS = ("changed",)  # not in mixed expressions, because JAX has no changes in place
SPARSE_SHARE = 0.4
PASSED = ("fetched", "reference", "value")


@dataclass(frozen=True)
class Leaf:
    """Leaf of an expression: the worker that owns it, and whether it is a sparse tensor."""

    owner: int
    sparse: bool


@dataclass(frozen=True)
class Step:
    """Operation of an expression.

    Attributes:
        operation: its name.
        inputs: numbers of two values: leaves are counted first, then steps.
        at: rank of the worker that it runs on.
        way: how that is asked for.
        to: rank of another worker that takes part in some ways.
        passed: how inputs that live elsewhere are given: "fetched" before, as a "reference", or as its "value", which the
            worker that needs it fetches. A result that is not there yet is passed on as a future, unless it is fetched.
        mesh: ranks of the workers that are called together in some ways, in their order.
    """

    operation: str
    inputs: tuple[int, int]
    at: int
    way: str
    to: int
    passed: str
    mesh: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Expression: the loss is the sum of all elements of some values.

    Attributes:
        seed: it decides everything.
        mode: mode of the backward.
        leaves: its leaves.
        steps: its operations, in order.
        used: numbers of the values that are added up.
        passes: how many backward passes there are.
        library: "telegrad", or "torch": the library of its tensors. "mixed": each worker has its own.
    """

    seed: int
    mode: str
    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]
    used: tuple[int, ...]
    passes: int
    library: str = "telegrad"

    def leaf_is_sent(self, number: int) -> bool:
        """Return whether a leaf is sent to the first worker; otherwise that gets a reference to it."""
        return bool((self.seed + number) % 2)


def make_plan(seed: int, workers: int, mode: str, blocking: bool, library: str = "telegrad") -> Plan:
    """Return the expression of a seed.

    Args:
        seed: decides everything but the other arguments.
        workers: number of workers.
        mode: "smart", or "fast": then every value contributes to the loss.
        blocking: calls may block their thread.
        library: library of its tensors. Only leaves of "telegrad" are sparse, because others cannot be sent. Every third
            "torch" or "mixed" expression is a tree: each value is used once.
    """
    rng = random.Random(f"{seed}/{mode}")
    tree = library != "telegrad" and seed % 3 == 0
    ways = WAYS + (BLOCKING_WAYS if blocking else ()) + (SMART_WAYS if mode == "smart" else ())
    if library == "telegrad":
        ways += MESH_WAYS + (BLOCKING_MESH_WAYS if blocking else ())
    if library == "mixed":
        ways = tuple(way for way in ways if way not in IN_PLACE_WAYS)
    leaves = tuple(
        Leaf(rng.randrange(workers), rng.random() < SPARSE_SHARE and library == "telegrad")
        for _ in range(rng.randint(2, MOST_LEAVES) if tree else rng.randint(1, workers + 1))
    )
    steps: list[Step] = []
    for _ in range(rng.randint(1, len(leaves) - 1 if tree else MOST_STEPS)):
        values = len(leaves) + len(steps)
        inputs = _two_unused(rng, values, steps) if tree else (rng.randrange(values), rng.randrange(values))
        steps.append(_step(rng, leaves, inputs, workers, ways, mode))
    used = _used(rng, leaves, steps, "fast" if tree else mode)
    return Plan(seed, mode, leaves, tuple(steps), used, rng.choice((1, 1, 2)), library)


def _two_unused(rng: random.Random, values: int, steps: list[Step]) -> tuple[int, int]:
    used = {number for step in steps for number in step.inputs}
    first, second = rng.sample([number for number in range(values) if number not in used], 2)
    return first, second


def _step(
    rng: random.Random,
    leaves: tuple[Leaf, ...],
    inputs: tuple[int, int],
    workers: int,
    ways: tuple[str, ...],
    mode: str,
) -> Step:
    first, second = inputs
    if first < len(leaves) and leaves[first].sparse:
        names = [*SPARSE]
    else:
        names = [*OPERATIONS, *(DETACHING if mode == "smart" else ()), *(OF_LEAVES if first < len(leaves) else ())]
    name = rng.choice(names)
    return Step(
        name,
        (first, second),
        rng.randrange(workers),
        rng.choice(ways if name not in (*OF_LEAVES, *SPARSE) else [way for way in ways if way not in IN_PLACE_WAYS]),
        rng.randrange(workers),
        rng.choice(PASSED),
        tuple(rng.sample(range(workers), rng.randint(1, min(workers, MOST_IN_MESH)))),
    )


def _used(rng: random.Random, leaves: tuple[Leaf, ...], steps: list[Step], mode: str) -> tuple[int, ...]:
    values = range(len(leaves) + len(steps))
    if mode == "smart":
        return tuple(rng.sample(values, rng.randint(1, min(3, len(values)))))
    taken = {number for step in steps for number in step.inputs}
    return tuple(number for number in values if number not in taken and number >= len(leaves))
