"""Expressions whose gradients equal those of one process bit by bit, because both add up the same gradients.

A sum of two gradients is the same in both orders. A tensor that is sent, and used on or sent again, can have one of three. What
is below two tensors that are sent may run once for each, and the results are added up later.
"""

from __future__ import annotations

from collections import Counter

from .plan import Plan, Step

NOT_SENT = (
    "here",
    "changed",
    "reference",
    "method",
    "future",
)  # ways whose result is made here, or is a reference or future
TWICE = "matrices"  # the operation that uses its first operand twice


def is_exact(plan: Plan) -> bool:
    """Return whether the gradients of an expression must be equal bit by bit."""
    if plan.library == "telegrad":
        return False  # sparse gradients are added up by row
    users = Counter(number for step in plan.steps for number in step.inputs) + Counter(plan.used)
    repeated = {number for number, count in users.items() if count > 1}
    if plan.library == "mixed":
        return not repeated
    return all(users[number] == 2 and _arrived(plan, number) and _stays(plan, number) for number in repeated)


def _arrived(plan: Plan, number: int) -> bool:
    """Return whether a value comes to the first worker from another one once, so that nothing below it runs there."""
    if number < len(plan.leaves):
        return plan.leaf_is_sent(number)
    return plan.steps[number - len(plan.leaves)].way not in NOT_SENT


def _stays(plan: Plan, number: int) -> bool:
    return all(_is_local(step, number) for step in plan.steps if number in step.inputs)


def _is_local(step: Step, number: int) -> bool:
    return step.way == "here" and not (step.operation == TWICE and step.inputs[0] == number)
