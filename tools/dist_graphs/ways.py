"""Ways to run an operation on another worker. Values are tensors, references to tensors elsewhere, and futures of tensors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...core.extend import Tensor
from ...core.futures import Future
from ...rpc import functions, rpc_async, rpc_sync
from ...rref import RRef, remote, value
from .libraries import apply_here, compute, double
from .mesh_ways import MESH_RUN, mesh_result
from .operands import Value, here
from .operations import apply, dense
from .plan import Step

# How each way changes the result of the operation.
CHANGES: dict[str, Callable[[Any], Any]] = {
    "promise": lambda result: result + 0.25,
    "on and on": lambda result: result * 1.5,
    "rpc_sync": lambda result: result - 0.25,
    "to_here": lambda result: result - 0.25,
}


HALF = 0.5  # what "changed" makes of a part of a tensor after it was sent


# -- functions that run on other workers


async def apply_there(name: str, left: Value, right: Value) -> Tensor:
    """Run an operation on tensors and references."""
    return apply_here(name, await here(left), await here(right))


async def pass_on(name: str, left: Value, right: Value, to: int) -> Tensor:
    """Have another worker run an operation, and use its result."""
    return compute(CHANGES["on and on"], await rpc_async(to, apply_there, (name, left, right)))


@functions.async_execution
def promise(name: str, left: Value, right: Value, to: int) -> Future[Tensor]:
    """Have another worker run an operation, and hold no thread meanwhile."""
    done = rpc_async(to, apply_there, (name, left, right))
    return done.then(lambda done: compute(CHANGES["promise"], done.value()))


class Applier:
    """Object with a method to call through a reference."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def apply(self, left: Value, right: Value) -> Tensor:
        """Run the operation."""
        return await apply_there(self.name, left, right)


class Box:
    """Object with tensors in it, as users make them."""

    def __init__(self, left: Value, right: Value) -> None:
        self.left = left
        self.inside = {"right": [right]}


async def apply_to_box(name: str, box: Box, more: bool) -> Box:
    """Run an operation on what is in an object, and return another; ``more``: with a tensor that nothing needs."""
    left, right = await here(box.left), await here(box.inside["right"][0])
    return Box(apply_here(name, left, right), compute(double, left) if more else None)


def block(name: str, left: Value, right: Value, to: int) -> Tensor:
    """Run an operation in a thread that blocks: it fetches, and calls another worker."""
    left, right = (each.to_here() if isinstance(each, RRef) else each for each in (left, right))
    return compute(CHANGES["rpc_sync"], rpc_sync(to, apply_here, (name, left, right)))


# -- the ways


async def _object(step: Step, left: Value, right: Value, more: bool) -> Value:
    box = await rpc_async(step.at, apply_to_box, (step.operation, Box(left, right), more))
    return box.left


async def _proxy(step: Step, left: Value, right: Value) -> Value:
    with remote(step.at, Applier, (step.operation,)) as applier:
        return await applier.rpc_async().apply(left, right)


async def _method(step: Step, left: Value, right: Value) -> Value:
    with remote(step.at, Applier, (step.operation,)) as applier:
        return applier.remote().apply(left, right)


async def _future(step: Step, left: Value, right: Value) -> Value:
    return rpc_async(step.at, apply_there, (step.operation, left, right))


async def _reference(step: Step, left: Value, right: Value) -> Value:
    return remote(step.at, apply_there, (step.operation, left, right))


async def _to_here(step: Step, left: Value, right: Value) -> Value:
    return remote(step.at, block, (step.operation, left, right, step.to)).to_here()


async def _rpc_sync(step: Step, left: Value, right: Value) -> Value:
    return rpc_sync(step.at, block, (step.operation, left, right, step.to))


async def _call(step: Step, left: Value, right: Value) -> Value:
    return await rpc_async(step.at, apply_here, (step.operation, await here(left), await here(right)))


def _awaited(function: Callable[..., Any], *more: str) -> Callable[[Step, Value, Value], Awaitable[Value]]:
    async def run(step: Step, left: Value, right: Value) -> Value:
        extra = (getattr(step, name) for name in more)
        return await rpc_async(step.at, function, (step.operation, left, right, *extra))

    return run


async def _changed(step: Step, left: Value, right: Value) -> Value:
    sent: Any = double(dense(await here(left)))
    part = sent[1:]
    result = await rpc_async(step.at, apply_there, (step.operation, sent, right))
    part.mul_(HALF)
    return result + sent


async def _here(step: Step, left: Value, right: Value) -> Value:
    return await apply_there(step.operation, left, right)


RUN: dict[str, Callable[[Step, Value, Value], Awaitable[Value]]] = {
    "here": _here,
    "call": _call,
    "reference": _reference,
    "async function": _awaited(apply_there),
    "promise": _awaited(promise, "to"),
    "proxy": _proxy,
    "method": _method,
    "future": _future,
    "on and on": _awaited(pass_on, "to"),
    "rpc_sync": _rpc_sync,
    "to_here": _to_here,
    "changed": _changed,
    **MESH_RUN,
}


def _meant(argument: Value) -> Value:
    return value(argument) if isinstance(argument, RRef) else argument


async def run(step: Step, left: Value, right: Value, smart: bool) -> Value:
    """Run a step in its way, and return its result.

    Args:
        step: what to run, where, and how.
        left: the first operand.
        right: the second operand.
        smart: results that nothing needs may be made on the way.
    """
    if step.passed == "fetched":
        left, right = await here(left), await here(right)
    elif step.passed == "value" and step.way not in ("here", "changed", *MESH_RUN):
        left, right = _meant(left), _meant(right)
    if step.way == "object":
        return await _object(step, left, right, smart)
    return await RUN[step.way](step, left, right)


def run_in_one_process(step: Step, left: Any, right: Any) -> Any:
    """Return what ``run`` returns, computed by this process alone."""
    if step.way == "changed":
        sent = double(dense(left))
        part = sent[1:]
        result = apply(step.operation, sent.clone(), right)
        part.mul_(HALF)
        return result + sent
    result = apply(step.operation, left, right)
    if step.way in MESH_RUN:
        return mesh_result(step, result)
    return CHANGES[step.way](result) if step.way in CHANGES else result
