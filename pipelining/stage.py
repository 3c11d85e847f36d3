"""``Stage``: a part of a pipeline, on the worker that owns its module. It runs its actions in the order of the schedule.

Activations go from stage to stage directly, and so do gradients back; the driver gives inputs to the first stage and targets
to the last. Each stage runs its own backward, so gradients add up in the parameters' ``.grad`` on each worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.errors import RpcError, RpcTimeoutError
from ..core import Tensor
from ..core.futures import Future, wait_all
from ..nn import Module
from ..rpc.extend import Agent
from .deliveries import Address, Deliveries, Values
from .inbox import Inbox
from .schedules import BACKWARD, FORWARD, Action
from .tensors import as_leaf, needs_grad, recording, run_again_later, run_backward

Loss = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class StagePlan:
    """One step of one stage.

    Attributes:
        step: number of the step, from 1.
        index: number of the stage.
        actions: in their order.
        before, after: the neighbours; ``None`` at the ends.
        inputs: arguments of the module for each micro-batch, at the first stage.
        targets: second argument of the loss for each micro-batch, at the last stage.
        loss: called with the result of the last stage and a target; ``None`` if nothing is trained.
        weights: share of each micro-batch in the batch.
        checkpoint: compute activations again in the backward, and keep only the inputs.
        seconds: time-out of the step.
    """

    step: int
    index: int
    actions: Sequence[Action]
    before: Address | None
    after: Address | None
    inputs: Sequence[Values]
    targets: Sequence[Any]
    loss: Loss | None
    weights: Sequence[float]
    checkpoint: bool
    seconds: float


@dataclass
class StageReport:
    """Result of a step of one stage.

    Attributes:
        results: the loss of each micro-batch, or the last module's results if there is no loss; empty at other stages.
        busy: action, start and end in this worker's seconds.
        most_kept: the largest number of micro-batches whose activations were kept at one time.
    """

    results: list[Any] = field(default_factory=list)
    busy: list[tuple[Action, float, float]] = field(default_factory=list)
    most_kept: int = 0


class Stage:
    """Part of a pipeline on one worker.

    Args:
        agent: the worker's agent.
        module: the part of the model.
    """

    def __init__(self, agent: Agent, module: Module) -> None:
        self.module = module
        self.inbox = Inbox()
        self._agent = agent
        self._deliveries = Deliveries.of(agent)
        self.address = self._deliveries.add(self.inbox)

    def run(self, plan: StagePlan) -> StageReport:
        """Run the actions of a step.

        Raises:
            RpcTimeoutError: a neighbour sent nothing in time.
            Exception: the error of the module, or of another stage.
        """
        self.inbox.begin(plan.step)
        try:
            return _Run(self._agent, self.module, self.inbox, self._deliveries, plan).run()
        finally:
            self.inbox.end()

    def abort(self, step: int, reason: str) -> None:
        """Give a step up, if it is under way.

        Args:
            step: its number.
            reason: why.
        """
        self.inbox.abort(step, RpcError(reason))

    def train(self, mode: bool) -> None:
        """Set the mode of the module."""
        self.module.train(mode)


class _Run:
    """One step of one stage while it runs."""

    def __init__(self, agent: Agent, module: Module, inbox: Inbox, deliveries: Deliveries, plan: StagePlan) -> None:
        self._agent = agent
        self._module = module
        self._inbox = inbox
        self._deliveries = deliveries
        self._plan = plan
        self._deadline = time.monotonic() + plan.seconds
        self._kept: dict[int, tuple[Values, Values]] = {}  # by micro-batch: what came in, what went out
        self._sent: list[Future[Any]] = []
        self._report = StageReport()

    def run(self) -> StageReport:
        for action in self._plan.actions:
            given = self._given(action)
            start = time.perf_counter()
            work = self._forward if action.kind == FORWARD else self._backward
            to, values = work(action.microbatch, given)
            self._report.busy.append((action, start, time.perf_counter()))
            if to is not None:
                self._send(to, action, values)
        wait_all(self._sent, self._left())
        return self._report

    def _given(self, action: Action) -> Values:
        plan = self._plan
        if action.kind == FORWARD and plan.before is None:
            return plan.inputs[action.microbatch]
        if action.kind == BACKWARD and plan.after is None:
            return ()
        try:
            values: Values = self._inbox.take(plan.step, action, self._left())
        except TimeoutError:
            neighbour = plan.before if action.kind == FORWARD else plan.after
            assert neighbour is not None
            name = self._agent.peers.at(neighbour.worker).info.name
            raise RpcTimeoutError(
                f"stage {plan.index} waited in vain for micro-batch {action.microbatch} of the {action.kind} of worker "
                f"{name!r}: the step took longer than {plan.seconds:g} s; give Pipeline a longer timeout="
            ) from None
        return values

    def _forward(self, number: int, given: Values) -> tuple[Address | None, Values]:
        plan = self._plan
        trains = any(action.kind == BACKWARD for action in plan.actions)
        inputs = tuple(as_leaf(value, trains and plan.before is not None) for value in given)
        with recording(trains):
            again = trains and plan.checkpoint
            result = run_again_later(self._module, inputs) if again else self._module(*inputs)
            if plan.after is None:
                result = self._last(result, number)
        results = result if isinstance(result, tuple) else (result,)
        if trains:
            self._kept[number] = inputs, results
            self._report.most_kept = max(self._report.most_kept, len(self._kept))
        return plan.after, tuple(as_leaf(value, False) for value in results)

    def _last(self, result: Any, number: int) -> Any:
        plan = self._plan
        if plan.loss is None:
            self._report.results.append(result)
            return result
        loss = plan.loss(result, plan.targets[number])
        self._report.results.append(loss.item())
        return loss * plan.weights[number]

    def _backward(self, number: int, given: Values) -> tuple[Address | None, Values]:
        inputs, results = self._kept.pop(number)
        gradients = given or (None,) * len(results)
        pairs = [pair for pair in zip(results, gradients, strict=True) if needs_grad(pair[0])]
        if pairs:
            run_backward([result for result, _ in pairs], [gradient for _, gradient in pairs])
        return self._plan.before, tuple(value.grad if needs_grad(value) else None for value in inputs)

    def _send(self, to: Address, action: Action, values: Values) -> None:
        self._sent.append(self._deliveries.send(to, self._plan.step, action, values, max(self._left(), 1e-3)))

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)
