"""Compiled steps with other workers in a simulated workload: each gives the bits of one process, or fails by name.

A step calls one layer of another worker, or two: one after the other, side by side, or the second one from the first. Behind,
it may call one outside of the autograd context.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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
PLAIN = 0.3  # share of steps with a call outside of the context
ONE_BY_ONE, SIDE_BY_SIDE, NESTED = FORMS = ("one by one", "side by side", "nested")
FORGETS = 0.05  # how often a callee forgets the parts of steps that it knows


class Layer:
    """A layer with one weight.

    Args:
        first: its first element.
    """

    def __init__(self, first: float) -> None:
        self.weight = Tensor(np.linspace(first, first + 1.0, SIZE), requires_grad=True)
        self.next: RRef[Layer] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the layer. It uses its input once: of two gradients a sum has one order only."""
        return (x * self.weight).tanh()

    def onward(self, x: Tensor) -> Tensor:
        """Return the output of the next layer, which gets that of this one."""
        assert self.next is not None
        result: Tensor = self.next.rpc_sync().forward(self.forward(x))
        return result

    def doubled(self, x: Tensor) -> Tensor:
        """Return something that no gradient goes through."""
        return x * 2

    def lend_weight(self) -> RRef[Tensor]:
        """Return a reference to the weight."""
        return RRef(self.weight)


def lend_layer(first: float) -> tuple[RRef[Layer], RRef[Tensor]]:
    """Return references to a new layer of this worker, and to its weight."""
    layer = Layer(first)
    return RRef(layer), layer.lend_weight()


def lead_on(layer: RRef[Layer], following: RRef[Layer]) -> None:
    """Let a layer of this worker call another one."""
    layer.local_value().next = following


def forget_parts() -> None:
    """Forget all parts of steps that this worker has for others."""
    from ...autograd_dist.captured.parts import CapturedParts

    current_worker().agent.part(CapturedParts)._table.clear()


class Trained:
    """A layer, and one or two on other workers, which are trained; and equal ones here, to compare.

    Args:
        workers: numbers of the other workers.
        first: decides the weights.
        plain: whether a step ends with a call outside of the autograd context.
        form: one of ``FORMS``.
    """

    def __init__(self, workers: Sequence[int], first: float, plain: bool, form: str) -> None:
        self._plain, self.form = plain, form
        firsts = [first + place for place in range(len(workers))]
        lent = [rpc_sync(worker, lend_layer, (each,)) for worker, each in zip(workers, firsts)]
        self._near, self._far = Layer(-first), [layer for layer, _ in lent]
        if self.form == NESTED:
            rpc_sync(workers[0], lead_on, tuple(self._far))
        weights = [*(weight for _, weight in lent), RRef(self._near.weight)]
        self._optimizer = DistributedOptimizer(SGD, weights, lr=RATE, momentum=0.5)
        self._same_near, self._same = Layer(-first), list(map(Layer, firsts))
        same = [each.weight for each in (*self._same, self._same_near)]
        self._same_optimizer = SGD(same, lr=RATE, momentum=0.5)
        self._step = Compiled(self._one, False)

    @property
    def replays(self) -> int:
        """Return the number of replays of the plans that are left."""
        return sum(plan.replays for plan in self._step.plans())

    def _one(self, x: Tensor) -> Tensor:
        with context() as context_id:
            x = self._near.forward(x)
            if self.form == NESTED:
                x = self._far[0].rpc_sync().onward(x)
            elif self.form == SIDE_BY_SIDE:
                results = [each.rpc_async().forward(x) for each in self._far]
                x = results[0].wait() + results[-1].wait()
            else:
                for each in self._far:
                    x = each.rpc_sync().forward(x)
            loss = (x**2).sum()
            backward(context_id, [loss])
            self._optimizer.step(context_id)
        loss = loss.detach()
        return self._far[0].rpc_sync().doubled(loss) if self._plain else loss

    def step(self, x: Tensor) -> tuple[Any, Any]:
        """Return the loss of a step, and that of the same step in one process."""
        loss = self._step(x).numpy()
        x = self._same_near.forward(x)
        if self.form == SIDE_BY_SIDE:
            results = [each.forward(x) for each in self._same]
            x = results[0] + results[-1]
        else:
            for each in self._same:
                x = each.forward(x)
        same = (x**2).sum()
        self._same_optimizer.zero_grad()
        same.backward()
        self._same_optimizer.step()
        return loss, same.detach().numpy() * (2 if self._plain else 1)


async def train(worker: Worker) -> None:
    """Train with other workers for some steps."""
    counts, random = worker.simulation.workload.counts, worker.random
    ranks = [worker.anyone() for _ in range(random.choice([1, 2]))]
    if worker.place in ranks:
        return
    nested = worker.simulation.workload.blocks and len({*ranks}) > 1
    plain, form = random.random() < PLAIN, random.choice(FORMS if nested else FORMS[:2])
    trained = await blocking(worker, Trained, ranks, random.random(), plain, form)
    for _ in range(STEPS):
        if random.random() < FORGETS:
            await blocking(worker, rpc_sync, random.choice(ranks), forget_parts)
        x = Tensor(np.array([random.random() for _ in range(SIZE)]))
        before = trained.replays
        loss, same = await blocking(worker, trained.step, x)
        counts["compiled steps"] += 1
        replayed = trained.replays > before
        counts["replays"] += replayed
        counts["nested replays"] += replayed and trained.form == NESTED
        if loss.tobytes() != same.tobytes():
            worker.simulation.violation(f"a step at {worker.name} with {ranks} gave {loss!r}, in one process {same!r}")
        await asyncio.sleep(random.expovariate(1.0 / THINK_SECONDS))


class CapturedSteps(Workload):
    """Workload of compiled steps alone. Functions that are called may call on, and block."""

    blocks = True

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
