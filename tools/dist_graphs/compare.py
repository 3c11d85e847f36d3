"""Run of one expression across workers and in one process, and the comparison of the gradients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from ...autograd_dist import context
from ...core.extend import Tensor
from ...rpc import rpc_async
from ...rref import RRef
from .exact import is_exact
from .leaves import Gradient, gradient_of, leaf_value, make_leaf, take_gradient
from .libraries import compute, total
from .mixed import gradients_by_hand
from .operands import here
from .plan import Plan
from .ways import run, run_in_one_process

TOLERANCES = {"telegrad": 1e-9, "torch": 1e-12, "mixed": 1e-12}
Backward = Callable[[int, list[Tensor], bool, str], Awaitable[Any]]


def lend_leaf(plan: Plan, number: int) -> RRef:
    """Return a reference to a leaf of this worker."""
    return RRef(leaf_value(plan, number))


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
        loss = compute(total, *[await here(values[number]) for number in plan.used])
        for done in range(1, plan.passes + 1):
            await backward(context_id, [loss], done < plan.passes, plan.mode)
        return {
            number: await rpc_async(plan.leaves[number].owner, take_gradient, (plan, number, context_id))
            for number in leaves
        }


async def _leaf(plan: Plan, number: int) -> Any:
    take = leaf_value if plan.leaf_is_sent(number) else lend_leaf
    return await rpc_async(plan.leaves[number].owner, take, (plan, number))


def gradients_in_one_process(plan: Plan) -> dict[int, Gradient]:
    """Compute an expression here, and return the gradients of all leaves."""
    values: list[Tensor] = [make_leaf(plan, number, plan.library) for number in range(len(plan.leaves))]
    leaves = values.copy()
    for step in plan.steps:
        left, right = (values[each] for each in step.inputs)
        values.append(run_in_one_process(step, left, right))
    loss = total(*[values[number] for number in plan.used])
    for done in range(1, plan.passes + 1):
        loss.backward(retain_graph=done < plan.passes)
    return {number: gradient_of(leaf.grad) for number, leaf in enumerate(leaves)}


def differences(plan: Plan, found: dict[int, Gradient]) -> list[str]:
    """Return how gradients differ from those of one process; nothing if they do not."""
    expected = _dense_gradients(plan) if plan.library == "mixed" else gradients_in_one_process(plan)
    tolerance = 0 if is_exact(plan) else TOLERANCES[plan.library]
    problems = []
    for number, gradient in found.items():
        wanted = expected[number]
        if wanted is None or gradient is None:
            same = gradient is wanted
        else:
            close = np.allclose(gradient[0], wanted[0], rtol=tolerance, atol=tolerance)
            same = bool(close) and (gradient[1] == wanted[1] or plan.library == "mixed")
        if not same:
            problems.append(f"leaf {number} has the gradient {gradient}, and in one process {wanted}")
    return problems


def _dense_gradients(plan: Plan) -> dict[int, Gradient]:
    found = gradients_by_hand(plan)
    return {number: None if array is None else (array, False) for number, array in found.items()}
