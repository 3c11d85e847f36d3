"""Leaves of random expressions: every worker can make those that it owns, and an equal one can be made anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd_dist import get_gradients
from ...core import sparse_coo_tensor
from ...core.extend import Tensor
from ...rpc.extend import current_agent
from .plan import SHAPE, Plan

Gradient = tuple[Any, bool] | None  # its array, and whether it was sparse; ``None`` for no gradient
PLACES = ([0, 1, 3, 3], [2, 0, 1, 2])


class Leaves:
    """The leaves that one worker owns, by plan and number."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, int, int], Any] = {}


def make_leaf(plan: Plan, number: int) -> Any:
    """Return a new leaf of a plan, of float64."""
    rng = np.random.default_rng((plan.seed, number))
    values = rng.standard_normal(SHAPE)
    if plan.library == "torch":
        import torch

        return torch.from_numpy(values).requires_grad_()
    if not plan.leaves[number].sparse:
        return Tensor(values, requires_grad=True)
    return sparse_coo_tensor(PLACES, values[PLACES], SHAPE, requires_grad=True)


def own_leaf(plan: Plan, number: int) -> Any:
    """Return a leaf of this worker; it is made when it is asked for first."""
    made, key = current_agent().part(Leaves).made, (plan.mode, plan.seed, number)
    if key not in made:
        made[key] = make_leaf(plan, number)
    return made[key]


def gradient_of(gradient: Any) -> Gradient:
    """Return a gradient as data."""
    return None if gradient is None else (gradient.to_dense().numpy(force=True), gradient.is_sparse)


def take_gradient(plan: Plan, number: int, context_id: int) -> Gradient:
    """Return the gradient of a leaf of this worker in a context, and forget the leaf."""
    leaf = own_leaf(plan, number)
    current_agent().part(Leaves).made.pop((plan.mode, plan.seed, number), None)
    return gradient_of(get_gradients(context_id).get(leaf))
