"""Distributed autograd in a simulated workload: a forward over several workers, a backward, and the same in one process."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...autograd_dist import backward_async, context, get_gradients
from ...core.extend import Tensor
from ...rpc import rpc_async
from .calls import journal
from .journal import call
from .worker import Worker, current_worker

SIZE = 5
TOLERANCE = 1e-9
UNUSED = 0.5  # how often results are made that the loss does not need


def weight_of(rank: int) -> Tensor:
    """Return the parameter of a worker; every worker can make an equal one."""
    return Tensor(np.linspace(0.5, 1.5, SIZE) + 0.01 * rank, requires_grad=True)


def layer(values: Tensor, weight: Tensor) -> Tensor:
    """Return the output of one worker's layer."""
    return (values * weight).tanh() + values * values * weight


async def forward(number: int, values: Tensor, hops: list[int]) -> Tensor:
    """Compute this worker's layer and those of the workers in the list."""
    journal().ran(number)
    worker = current_worker()
    result = layer(values, parameter(worker))
    if hops:
        result = await call(worker, journal(), hops[0], forward, result, hops[1:])
    return result


def gradient(context_id: int) -> Any:
    """Return the gradient of this worker's parameter in a context."""
    return get_gradients(context_id)[parameter(current_worker())].numpy()


def parameter(worker: Worker) -> Tensor:
    """Return the parameter of a simulated worker."""
    return worker.simulation.workload.parameters[worker.rank]  # type: ignore[attr-defined]


async def train(worker: Worker) -> None:
    """Run one forward over a few workers, some of them twice, perhaps another that nothing needs, and one or two backwards."""
    hops = [worker.anyone() for _ in range(worker.random.randint(1, 4))]
    start = np.linspace(-1.0, 1.0, SIZE)
    owners: dict[int, Any] = {rank: worker.agent.peers.find(rank) for rank in hops}  # not those who may replace them
    with context() as context_id:
        result = await call(worker, journal(), hops[0], forward, Tensor(start), hops[1:])
        mode: Literal["fast", "smart"] = worker.random.choice(("fast", "smart"))
        if mode == "smart" and worker.random.random() < UNUSED:
            await call(worker, journal(), worker.anyone(), forward, worker.random.choice((Tensor(start), result)), hops)
        loss, passes = result.sum(), worker.random.randint(1, 2)
        for done in range(1, passes + 1):
            await backward_async(context_id, [loss], done < passes, mode=mode)
        found = {rank: await rpc_async(owner, gradient, (context_id,)) for rank, owner in owners.items()}
    worker.simulation.workload.counts["backwards"] += 1
    for rank, expected in in_one_process(start, hops).items():
        if not np.allclose(found[rank], passes * expected, rtol=TOLERANCE, atol=TOLERANCE):
            worker.simulation.violation(f"the gradient at w{rank} is {found[rank]}, in one process {passes * expected}")


def in_one_process(start: Any, hops: list[int]) -> dict[int, Any]:
    """Return the gradients of the same computation without other workers, by rank."""
    weights = {rank: weight_of(rank) for rank in hops}
    values = Tensor(start)
    for rank in hops:
        values = layer(values, weights[rank])
    values.sum().backward()
    return {rank: weight.grad.numpy() for rank, weight in weights.items() if weight.grad is not None}
