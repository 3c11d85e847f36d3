"""Run of one expression across workers and in one process, and the comparison of the gradients."""

from __future__ import annotations

import functools
import operator
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from ...autograd_dist import context
from ...core.extend import Tensor
from ...rpc import rpc_async
from ...rref import RRef
from .leaves import Gradient, gradient_of, make_leaf, own_leaf, take_gradient
from .operations import apply, dense
from .plan import Plan
from .ways import CHANGES, here, run

TOLERANCES = {"telegrad": 1e-9, "torch": 1e-12}
Backward = Callable[[int, list[Tensor], bool, str], Awaitable[Any]]


def lend_leaf(plan: Plan, number: int) -> RRef:
    """Return a reference to a leaf of this worker."""
    return RRef(own_leaf(plan, number))


async def gradients_across(plan: Plan, backward: Backward) -> dict[int, Gradient]:
    """Compute an expression across workers, and return the gradients of the leaves that it needs.

    Args:
        plan: the expression.
        backward: runs a pass: context, roots, whether to keep the graph, mode.
    """
    leaves = sorted({number for step in plan.steps for number in step.inputs} | set(plan.used))
    leaves = [number for number in leaves if number < len(plan.leaves)]
    with context() as context_id:
        values: dict[int, Any] = {number: await _leaf(plan, number) for number in leaves}
        for number, step in enumerate(plan.steps, len(plan.leaves)):
            left, right = (values[each] for each in step.inputs)
            values[number] = await run(step, left, right, plan.mode == "smart")
        loss = _total([await here(values[number]) for number in plan.used])
        for done in range(1, plan.passes + 1):
            await backward(context_id, [loss], done < plan.passes, plan.mode)
        return {
            number: await rpc_async(plan.leaves[number].owner, take_gradient, (plan, number, context_id))
            for number in leaves
        }


async def _leaf(plan: Plan, number: int) -> Any:
    take = own_leaf if (plan.seed + number) % 2 else lend_leaf
    return await rpc_async(plan.leaves[number].owner, take, (plan, number))


def gradients_in_one_process(plan: Plan) -> dict[int, Gradient]:
    """Compute an expression here, and return the gradients of all leaves."""
    values: list[Tensor] = [make_leaf(plan, number) for number in range(len(plan.leaves))]
    leaves = values.copy()
    for step in plan.steps:
        left, right = (values[each] for each in step.inputs)
        result = apply(step.operation, left, right)
        values.append(CHANGES[step.way](result) if step.way in CHANGES else result)
    loss = _total([values[number] for number in plan.used])
    for done in range(1, plan.passes + 1):
        loss.backward(retain_graph=done < plan.passes)
    return {number: gradient_of(leaf.grad) for number, leaf in enumerate(leaves)}


def _total(values: list[Tensor]) -> Tensor:
    return functools.reduce(operator.add, [dense(value).sum() for value in values])


def differences(plan: Plan, found: dict[int, Gradient]) -> list[str]:
    """Return how gradients differ from those of one process; nothing if they do not."""
    problems = []
    expected, tolerance = gradients_in_one_process(plan), TOLERANCES[plan.library]
    for number, gradient in found.items():
        wanted = expected[number]
        if wanted is None or gradient is None:
            same = gradient is wanted
        else:
            close = np.allclose(gradient[0], wanted[0], rtol=tolerance, atol=tolerance)
            same = bool(close) and gradient[1] == wanted[1]
        if not same:
            problems.append(f"leaf {number} has the gradient {gradient}, and in one process {wanted}")
    return problems
