"""Gradients of a mixed expression in one process: each operation alone, in its worker's library, and the rest by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import tensor
from .leaves import leaf_values
from .libraries import library_at
from .operations import apply
from .plan import Plan, Step

AT_THE_OTHER = ("promise", "on and on", "rpc_sync", "to_here")  # ways in which worker ``to`` runs the operation
ADDED = {"promise": 0.25, "rpc_sync": -0.25, "to_here": -0.25}
FACTORS = {"on and on": 1.5}
Derivative = Callable[[Any], tuple[Any, Any]]


def gradients_by_hand(plan: Plan) -> dict[int, Any]:
    """Return the gradients of all leaves as arrays; ``None`` for a leaf that the loss does not depend on."""
    values = [leaf_values(plan, number) for number in range(len(plan.leaves))]
    derivatives: list[Derivative] = []
    for step in plan.steps:
        library = library_at(plan.library, plan.seed + _rank(step))
        result, derivative = DERIVE[library](step.operation, *(values[number] for number in step.inputs))
        values.append(result * FACTORS.get(step.way, 1.0) + ADDED.get(step.way, 0.0))
        derivatives.append(derivative)
    gradients: dict[int, Any] = {number: np.ones_like(values[number]) for number in plan.used}
    for place in reversed(range(len(plan.steps))):
        if (gradient := gradients.get(len(plan.leaves) + place)) is not None:
            step = plan.steps[place]
            for number, share in zip(step.inputs, derivatives[place](gradient * FACTORS.get(step.way, 1.0))):
                if share is not None:
                    gradients[number] = gradients[number] + share if number in gradients else share
    found = {number: gradients.get(number) for number in range(len(plan.leaves))}
    return {number: None if each is None else each * plan.passes for number, each in found.items()}


def _rank(step: Step) -> int:
    if step.way == "here":
        return 0
    return step.to if step.way in AT_THE_OTHER else step.at


def _with_ours(name: str, left: Any, right: Any) -> tuple[Any, Derivative]:
    inputs = [tensor(left, requires_grad=True), tensor(right, requires_grad=True)]
    result = apply(name, *inputs)

    def derivative(gradient: Any) -> tuple[Any, Any]:
        result.backward(tensor(gradient))
        return _arrays(each.grad for each in inputs)

    return result.detach().numpy(), derivative


def _with_torch(name: str, left: Any, right: Any) -> tuple[Any, Derivative]:
    import torch

    inputs: Any = [torch.tensor(left, requires_grad=True), torch.tensor(right, requires_grad=True)]
    result: Any = apply(name, *inputs)

    def derivative(gradient: Any) -> tuple[Any, Any]:
        return _arrays(torch.autograd.grad(result, inputs, torch.tensor(gradient), allow_unused=True))

    return result.detach().numpy(), derivative


def _with_jax(name: str, left: Any, right: Any) -> tuple[Any, Derivative]:
    from .jax_operations import differentiate

    forward, derivative = differentiate(name)
    result, pull = forward(left, right)

    def of_arrays(gradient: Any) -> tuple[Any, Any]:
        left, right = derivative(pull, gradient)
        return np.asarray(left), np.asarray(right)

    return np.asarray(result), of_arrays


def _arrays(gradients: Any) -> tuple[Any, Any]:
    left, right = (None if each is None else each.to_dense().numpy() for each in gradients)
    return left, right


DERIVE = {"telegrad": _with_ours, "torch": _with_torch, "jax": _with_jax}
