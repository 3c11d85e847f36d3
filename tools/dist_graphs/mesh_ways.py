"""Ways to run an operation on several workers at once: each gets the operands, or a part of one."""

from __future__ import annotations

import functools
import operator
from collections.abc import Awaitable, Callable
from typing import Any

from ...core.futures import Future
from ...rpc import mesh, scattered, sharded
from .libraries import apply_here, double
from .operands import Value, here
from .operations import dense
from .plan import Step


async def apply_scaled(name: str, left: Value, right: Value, scale: float) -> Any:
    """Run an operation on tensors and references, and scale the result."""
    return apply_here(name, await here(left), await here(right)) * scale


class Scaler:
    """Object of one worker with a factor of its own.

    Args:
        scale: the factor.
    """

    def __init__(self, scale: float) -> None:
        self.scale = scale

    async def apply(self, name: str, left: Value, right: Value) -> Any:
        """Run an operation, and scale its result."""
        return await apply_scaled(name, left, right, self.scale)


def mesh_result(step: Step, result: Any) -> Any:
    """Return what a step gives, computed by one process.

    Args:
        step: the step.
        result: result of its operation.
    """
    if step.way == "sharded":
        return double(dense(result))
    total = sum(_scales(step))
    return result * (total / len(step.mesh) if step.way == "mean" else total)


def _scales(step: Step) -> list[float]:
    return [0.5 * (place + 1) for place in range(len(step.mesh))]


async def _sent(operand: Value) -> Value:
    """Return an operand as all workers can get it: a reference or a tensor."""
    return await operand if isinstance(operand, Future) else operand


def _reduced(reduce: str) -> Callable[[Step, Value, Value], Awaitable[Value]]:
    async def run(step: Step, left: Value, right: Value) -> Value:
        arguments = (step.operation, await _sent(left), await _sent(right), scattered(_scales(step)))
        return await mesh(step.mesh).call_async(apply_scaled, arguments, reduce=reduce)

    return run


async def _values(step: Step, left: Value, right: Value) -> Value:
    arguments = (step.operation, await _sent(left), await _sent(right), scattered(_scales(step)))
    return functools.reduce(operator.add, (await mesh(step.mesh).call_async(apply_scaled, arguments)).values())


async def _sharded(step: Step, left: Value, right: Value) -> Value:
    result = dense(apply_here(step.operation, await here(left), await here(right)))
    return await mesh(step.mesh).call_async(double, (sharded(result),), reduce="cat")


async def _objects(step: Step, left: Value, right: Value) -> Value:
    scalers = mesh(step.mesh).remote(Scaler, (scattered(_scales(step)),))
    try:
        arguments = (step.operation, await _sent(left), await _sent(right))
        return await scalers.call_async("apply", arguments, reduce="sum")
    finally:
        for reference in scalers:
            reference.release()


MESH_RUN: dict[str, Callable[[Step, Value, Value], Awaitable[Value]]] = {
    "sum": _reduced("sum"),
    "mean": _reduced("mean"),
    "values": _values,
    "sharded": _sharded,
    "objects": _objects,
}
