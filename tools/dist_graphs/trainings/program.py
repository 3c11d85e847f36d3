"""Random trainings, as data: models on the workers of a mesh, the calls of a step, and the optimizer."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal

from ....optim import SGD, Adagrad, Adam, Adamax, AdamW, NAdam, RMSprop, SparseAdam

MESH_CALLS = ("sum", "mean", "cat", "values", "sharded")  # a call of all models; others call one of them
ONE_CALLS = ("one", "reference")
MOST_CALLS = 4
MOST_STEPS = 4
DENSE_OPTIMIZERS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (SGD, {"lr": 0.1}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (Adam, {"lr": 0.05}),
    (AdamW, {"lr": 0.05, "weight_decay": 0.1}),
    (Adamax, {"lr": 0.05}),
    (NAdam, {"lr": 0.05}),
    (RMSprop, {"lr": 0.02, "momentum": 0.5}),
    (Adagrad, {"lr": 0.1}),
)
SPARSE_OPTIMIZERS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (SGD, {"lr": 0.1}),
    (Adagrad, {"lr": 0.1}),
    (SparseAdam, {"lr": 0.05}),
)
SPARSE_SHARE = 0.25


@dataclass(frozen=True)
class TrainingPlan:
    """Training: in each step, calls on models one after another, each with the result of the one before.

    Attributes:
        seed: it decides everything.
        mesh: ranks of the workers that have a model each, in their order.
        calls: for each call its way, and the place in the mesh of the model that is called, if it is one.
        steps: how many steps there are.
        sparse: the models have tables, whose gradients are sparse.
        optimizer, options: class of the optimizer, and its arguments.
        hogwild: parameters are updated in place.
        later: steps are taken by ``step_async``.
        decays: learning rates become smaller, by a scheduler.
        mode: mode of the backward.
        unused: models are called once more, and nothing needs the results.
    """

    seed: int
    mesh: tuple[int, ...]
    calls: tuple[tuple[str, int], ...]
    steps: int
    sparse: bool
    optimizer: Any
    options: dict[str, Any]
    hogwild: bool
    later: bool
    decays: bool
    mode: Literal["smart", "fast"]
    unused: bool


def make_training(seed: int, workers: int) -> TrainingPlan:
    """Return the training of a seed.

    Args:
        seed: decides everything but the number of workers.
        workers: number of workers.
    """
    rng = random.Random(f"{seed}/training")
    mesh = tuple(rng.sample(range(workers), rng.randint(1, min(workers, 4))))
    ways = [rng.choice(MESH_CALLS), *rng.choices(MESH_CALLS + ONE_CALLS, k=rng.randrange(MOST_CALLS))]
    rng.shuffle(ways)  # one calls all models at least, so that each worker has the context
    sparse = rng.random() < SPARSE_SHARE
    optimizer, options = rng.choice(SPARSE_OPTIMIZERS if sparse else DENSE_OPTIMIZERS)
    mode: Literal["smart", "fast"] = rng.choice(("smart", "fast"))
    return TrainingPlan(
        seed,
        mesh,
        tuple((way, rng.randrange(len(mesh))) for way in ways),
        rng.randint(1, MOST_STEPS),
        sparse,
        optimizer,
        options,
        hogwild=rng.random() < 0.3,
        later=rng.random() < 0.3,
        decays=rng.random() < 0.3,
        mode=mode,
        unused=mode == "smart" and rng.random() < 0.5,
    )
