"""Compiled steps with another worker in a simulated workload: each gives the bits of one process, or fails by name."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from ...autograd_dist import DistributedOptimizer, backward, context
from ...base.errors import AgentClosedError, RpcError
from ...capture.extend import Compiled
from ...core.extend import Tensor
from ...optim import SGD
from ...rpc import rpc_sync
from ...rref import RRef
from .blocking import blocking
from .journal import check_error
from .worker import Worker, current_worker
from .workload import Workload

SIZE = 3
STEPS = 8
THINK_SECONDS = 1.0  # mean pause between two steps
RATE = 0.125
FORGETS = 0.05  # how often a callee forgets the parts of steps that it knows


class Layer:
    """A layer with one weight.

    Args:
        first: its first element.
    """

    def __init__(self, first: float) -> None:
        self.weight = Tensor(np.linspace(first, first + 1.0, SIZE), requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the layer."""
        return (x * self.weight).tanh() + x

    def lend_weight(self) -> RRef[Tensor]:
        """Return a reference to the weight."""
        return RRef(self.weight)


def lend_layer(first: float) -> tuple[RRef[Layer], RRef[Tensor]]:
    """Return references to a new layer of this worker, and to its weight."""
    layer = Layer(first)
    return RRef(layer), layer.lend_weight()


def forget_parts() -> None:
    """Forget all parts of steps that this worker has for others."""
    from ...autograd_dist.captured.parts import CapturedParts

    current_worker().agent.part(CapturedParts)._table.clear()


class Trained:
    """Two layers, one of them on another worker, which are trained; and equal ones here, to compare.

    Args:
        worker: number of the other worker.
        first: decides the weights.
    """

    def __init__(self, worker: int, first: float) -> None:
        self._near = Layer(-first)
        self._far, far_weight = rpc_sync(worker, lend_layer, (first,))
        self._optimizer = DistributedOptimizer(SGD, [far_weight, RRef(self._near.weight)], lr=RATE, momentum=0.5)
        self._same = Layer(-first), Layer(first)
        self._same_optimizer = SGD([each.weight for each in self._same], lr=RATE, momentum=0.5)
        self._step = Compiled(self._one, False)

    @property
    def replays(self) -> int:
        """Return the number of replays of the plans that are left."""
        return sum(plan.replays for plan in self._step.plans())

    def _one(self, x: Tensor) -> Tensor:
        with context() as context_id:
            loss = (self._far.rpc_sync().forward(self._near.forward(x)) ** 2).sum()
            backward(context_id, [loss])
            self._optimizer.step(context_id)
        return loss.detach()

    def step(self, x: Tensor) -> tuple[Any, Any]:
        """Return the loss of a step, and that of the same step in one process."""
        loss = self._step(x).numpy()
        near, far = self._same
        same = (far.forward(near.forward(x)) ** 2).sum()
        self._same_optimizer.zero_grad()
        same.backward()
        self._same_optimizer.step()
        return loss, same.detach().numpy()


async def train(worker: Worker) -> None:
    """Train with another worker for some steps."""
    counts = worker.simulation.workload.counts
    rank = worker.anyone()
    if rank == worker.place:
        return
    random = worker.random
    trained = await blocking(worker, Trained, rank, random.random())
    for _ in range(STEPS):
        if random.random() < FORGETS:
            await blocking(worker, rpc_sync, rank, forget_parts)
        x = Tensor(np.array([random.random() for _ in range(SIZE)]))
        before = trained.replays
        loss, same = await blocking(worker, trained.step, x)
        counts["compiled steps"] += 1
        counts["replays"] += trained.replays > before
        if loss.tobytes() != same.tobytes():
            worker.simulation.violation(f"a step at {worker.name} with w{rank} gave {loss!r}, in one process {same!r}")
        await asyncio.sleep(random.expovariate(1.0 / THINK_SECONDS))


class CapturedSteps(Workload):
    """Workload of compiled steps alone."""

    async def main(self, worker: Worker) -> None:
        while worker.simulation.busy:
            await asyncio.sleep(worker.random.expovariate(1.0 / THINK_SECONDS))
            try:
                await train(worker)
            except AgentClosedError:
                return  # it was expelled
            except RpcError as error:
                self.counts[type(error).__name__] += 1
                check_error(worker.simulation, f"a step at {worker.name}", error)
