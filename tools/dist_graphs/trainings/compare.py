"""Training across workers beside the same in one process: losses, gradients and parameters after each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....autograd_dist import DistributedOptimizer, backward, context
from ....core.extend import Tensor
from ....optim.lr_scheduler import StepLR
from ....rpc import mesh, scattered
from ..leaves import Gradient, gradient_of
from ..plan import SHAPE
from .models import ACROSS, TrainedModel, call_here
from .program import TrainingPlan

TOLERANCE = 1e-9
DECAY = 0.5
Outcome = tuple[
    Any, list[Gradient], list[Any]
]  # of a step: loss, gradients and values of all parameters, the caller's last


def run_training(plan: TrainingPlan) -> list[str]:
    """Train across workers, and return how a step differs from that in one process; nothing if none does. Blocks.

    Args:
        plan: the training. This worker calls.
    """
    for step, (found, expected) in enumerate(zip(_across(plan), _in_one_process(plan))):
        if problems := list(_differences(found, expected)):
            return [f"step {step}: {each}" for each in problems]
    return []


def _argument(plan: TrainingPlan, step: int) -> Any:
    return np.random.default_rng((plan.seed, 100, step)).standard_normal(SHAPE)


def _across(plan: TrainingPlan) -> Iterator[Outcome]:
    places = scattered([*range(len(plan.mesh))])
    models = mesh(plan.mesh).remote(TrainedModel, (plan.seed, places, plan.sparse))
    own = TrainedModel(plan.seed, -1, plan.sparse)
    parameters = [*models.call("lend").values(), own.lend()]
    optimizer = DistributedOptimizer(plan.optimizer, parameters, hogwild=plan.hogwild, **plan.options)
    scheduler = optimizer.schedule(StepLR, 1, gamma=DECAY) if plan.decays else None
    for step in range(plan.steps):
        with context() as context_id:
            x = own.forward(Tensor(_argument(plan, step)))
            if plan.unused:
                models.call("forward", (x,))
            for way, place in plan.calls:
                x = ACROSS[way](models, x, place)
            loss = x.sum()
            backward(context_id, [loss], mode=plan.mode)
            gradients = [*models.call("gradient", (context_id,)).values(), own.gradient(context_id)]
            optimizer.step_async(context_id).wait() if plan.later else optimizer.step(context_id)
        if scheduler is not None:
            scheduler.step()
        yield loss.item(), gradients, [*models.call("values").values(), own.values()]


def _in_one_process(plan: TrainingPlan) -> Iterator[Outcome]:
    models = [TrainedModel(plan.seed, place, plan.sparse) for place in range(len(plan.mesh))]
    own = TrainedModel(plan.seed, -1, plan.sparse)
    optimizer = plan.optimizer([model.weight for model in (*models, own)], **plan.options)
    scheduler = StepLR(optimizer, 1, gamma=DECAY) if plan.decays else None
    for step in range(plan.steps):
        optimizer.zero_grad()
        x = own.forward(Tensor(_argument(plan, step)))
        for way, place in plan.calls:
            x = call_here(way, models, x, place)
        loss = x.sum()
        loss.backward()
        gradients = [gradient_of(model.weight.grad) for model in (*models, own)]
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        yield loss.item(), gradients, [model.values() for model in (*models, own)]


def _differences(found: Outcome, expected: Outcome) -> Iterator[str]:
    if not _close(found[0], expected[0]):
        yield f"the loss is {found[0]}, and in one process {expected[0]}"
    yield from _unequal("gradient", found[1], expected[1])
    yield from _unequal("parameter", found[2], expected[2])


def _unequal(what: str, found: Sequence[Any], expected: Sequence[Any]) -> Iterator[str]:
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not _same(one, other):
            yield f"the {what} of model {place} is {one}, and in one process {other}"


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    if isinstance(one, tuple):  # a gradient, and whether it is sparse
        return one[1] == other[1] and _close(one[0], other[0])
    return _close(one, other)


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE))
