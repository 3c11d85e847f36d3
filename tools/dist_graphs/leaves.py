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
    """The leaves that one worker owns, by plan and number.

    Args:
        library: the worker's library.
        mixed: other workers have other libraries.
    """

    def __init__(self, library: str = "telegrad", mixed: bool = False) -> None:
        self.library = library
        self.mixed = mixed
        self.made: dict[tuple[str, int, int], Any] = {}


def leaf_values(plan: Plan, number: int) -> Any:
    """Return the elements of a leaf, of float64."""
    return np.random.default_rng((plan.seed, number)).standard_normal(SHAPE)


def make_leaf(plan: Plan, number: int, library: str) -> Any:
    """Return a new leaf of a plan.

    Args:
        plan, number: which leaf.
        library: its library.
    """
    values = leaf_values(plan, number)
    if library == "torch":
        import torch

        return torch.from_numpy(values).requires_grad_()
    if library == "jax":
        from ...interop.jax import Parameters

        return Parameters(values)
    if not plan.leaves[number].sparse:
        return Tensor(values, requires_grad=True)
    return sparse_coo_tensor(PLACES, values[PLACES], SHAPE, requires_grad=True)


def own_leaf(plan: Plan, number: int) -> Any:
    """Return a leaf of this worker; it is made when it is asked for first."""
    leaves, key = current_agent().part(Leaves), (plan.mode, plan.seed, number)
    if key not in leaves.made:
        leaves.made[key] = make_leaf(plan, number, leaves.library)
    return leaves.made[key]


def leaf_value(plan: Plan, number: int) -> Any:
    """Return a leaf of this worker as a tensor of the context's graph."""
    leaf = own_leaf(plan, number)
    if current_agent().part(Leaves).library != "jax":
        return leaf
    from ...interop.jax import call

    return call(_same, leaf)


def _same(tree: Any) -> Any:
    return tree


def gradient_of(gradient: Any) -> Gradient:
    """Return a gradient as data."""
    if gradient is None:
        return None
    if not hasattr(gradient, "is_sparse"):
        return np.asarray(gradient), False  # it is of JAX
    return gradient.to_dense().numpy(force=True), gradient.is_sparse


def take_gradient(plan: Plan, number: int, context_id: int) -> Gradient:
    """Return the gradient of a leaf of this worker in a context, and forget the leaf."""
    leaf = own_leaf(plan, number)
    current_agent().part(Leaves).made.pop((plan.mode, plan.seed, number), None)
    return gradient_of(get_gradients(context_id).get(leaf))
