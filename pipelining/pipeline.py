"""``Pipeline``: the driver of stages on other workers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ..base.arguments import check_type
from ..base.errors import RpcError
from ..core import Tensor, tensor
from ..core.futures import Future, wait_all
from ..nn import Module
from ..nn.extend import is_module
from ..rpc.extend import UNSET_RPC_TIMEOUT, call_function, check_timeout, current_agent
from ..rref import RemoteModule, RRef
from .deliveries import Address
from .schedules import Schedule, forward_only, schedule_of
from .stage import Loss, Stage, StagePlan, StageReport
from .stage_optimizers import StageOptimizers
from .tensors import is_tensor, joined
from .timeline import Timeline

_steps = itertools.count(1)  # of all pipelines of this process, which may share stages


class Pipeline:
    """Model in stages on different workers, trained on micro-batches (``torch.distributed.pipelining``).

    ``step`` cuts a batch into micro-batches along the first dimension, and sends them through the stages in the order of the
    schedule. Gradients add up in the ``.grad`` of the parameters on each worker, and are those of the whole batch if the loss
    is a mean over it. Activations and gradients travel from stage to stage, not through this process.

    Args:
        stages: ``RemoteModule``s, or references to modules, in their order. A stage gets what the one before returns: a tensor,
            or a tuple, whose elements are its arguments.
        loss_fn: called on the last stage's worker with its result and a target; a mean over its rows.
        n_microbatches: into how many parts a batch is cut; the batch must have as many rows.
        schedule: ``"1F1B"``, or ``"GPipe"``, which keeps the activations of all micro-batches.
        checkpoint: keep only the inputs of stages, and compute what is inside again in the backward.
        timeout: seconds of a step; ``None`` takes the agent's ``rpc_timeout``.

    Attributes:
        timeline: who was busy when, in the latest step; ``None`` before the first.

    Raises:
        TypeError: a stage is neither a ``RemoteModule`` nor a reference.
        ValueError: there is no stage or schedule, or ``n_microbatches`` is below 1.

    Example:
        >>> import telegrad as tg
        >>> from telegrad.pipelining import Pipeline
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("driver", "a", "b") as (driver, *_), driver.use():
        ...     stages = [tg.RemoteModule("a", tg.nn.Linear, (3, 5)), tg.RemoteModule("b", tg.nn.Linear, (5, 1))]
        ...     pipeline = Pipeline(stages, tg.nn.functional.mse_loss, n_microbatches=2)
        ...     optimizer = pipeline.optimizer(tg.optim.SGD, lr=0.1)
        ...     x, y = tg.ones(4, 3), tg.zeros(4, 1)
        ...     before = pipeline.step(x, y)
        ...     optimizer.step()
        ...     print(pipeline(x).shape, bool(pipeline.step(x, y) < before))
        (4, 1) True
    """

    def __init__(
        self,
        stages: Sequence[RemoteModule | RRef[Any]],
        loss_fn: Loss | None = None,
        n_microbatches: int = 4,
        schedule: str = "1F1B",
        checkpoint: bool = False,
        timeout: float | None = None,
    ) -> None:
        check_type("stages", stages, Iterable, "a list of RemoteModules, or of references to modules")
        modules = [_reference(stage, index) for index, stage in enumerate(stages)]
        if not modules:
            raise ValueError("stages is empty; give RemoteModules, or references to modules")
        if not isinstance(n_microbatches, int) or n_microbatches < 1:
            raise ValueError(f"n_microbatches must be at least 1; you gave {n_microbatches!r}")
        self._agent = current_agent()
        self._loss = loss_fn
        self._count = n_microbatches
        self._schedule = schedule_of(schedule)
        self._checkpoint = checkpoint
        self._seconds = (self._agent.rpc_timeout or 1e9) if timeout is None else check_timeout("timeout", timeout)
        self.timeline: Timeline | None = None
        made = wait_all(self._call(module, _make_stage, module) for module in modules)
        self._stages = [stage for stage, _ in made]
        self._addresses = [address for _, address in made]
        self._names = [stage.owner_name() for stage in self._stages]
        self._offsets = [self._offset(stage) for stage in self._stages]

    def step(self, *args: Any, target: Any = None) -> Tensor:
        """Run forward and backward of a batch; gradients add up in ``.grad`` on the workers.

        Args:
            args: arguments of the first stage, and then the target if it is not given by name: tensors with equally many rows.
            target: second argument of the loss.

        Returns:
            The mean loss over the batch, a 0-d float64 tensor.

        Raises:
            RpcTimeoutError: the step took longer than the time-out.
            ValueError: no ``loss_fn`` was given, or rows do not fit.
            WorkerLostError: the worker of a stage is lost.
            Exception: the error of a stage's module, or of the loss.
        """
        if self._loss is None:
            raise ValueError("a step needs a loss; give Pipeline a loss_fn, or call the pipeline for its results")
        if target is None:
            *given, target = args
            args = tuple(given)
        inputs, rows = self._cut((*args, target))
        reports = self._run(self._schedule, [each[:-1] for each in inputs], [each[-1] for each in inputs], rows)
        return tensor(sum(loss * share for loss, share in zip(reports[-1].results, rows, strict=True)), dtype="float64")

    def __call__(self, *args: Any) -> Any:
        """Run the forward of a batch without recording, and return the last stage's result.

        Args:
            args: arguments of the first stage: tensors with equally many rows.
        """
        inputs, rows = self._cut(args)
        results = self._run(forward_only, inputs, None, rows)[-1].results
        if not isinstance(results[0], tuple):
            return joined(results)
        return tuple(joined(parts) for parts in zip(*results, strict=True))

    def optimizer(self, optimizer_class: Callable[..., Any], *args: Any, **kwargs: Any) -> StageOptimizers:
        """Return an optimizer for the parameters of all stages.

        Args:
            optimizer_class: ``optim.SGD``, ``optim.Adam``, … One is made on each stage's worker.
            args: positional arguments for it.
            kwargs: keyword arguments for it.
        """
        return StageOptimizers(self._agent, self._stages, optimizer_class, args, kwargs)

    def train(self, mode: bool = True) -> Pipeline:
        """Set the mode of all stages' modules; returns this object."""
        wait_all(stage.rpc_async().train(mode) for stage in self._stages)
        return self

    def eval(self) -> Pipeline:
        """Set the evaluation mode of all stages' modules; returns this object."""
        return self.train(False)

    # -- steps

    def _cut(self, values: tuple[Any, ...]) -> tuple[list[tuple[Any, ...]], list[float]]:
        """Return the arguments of each micro-batch, and its share of the rows."""
        sizes = {len(value) for value in values if is_tensor(value) and value.dim()}
        if len(sizes) != 1 or min(sizes) < self._count:
            raise ValueError(
                f"a batch for {self._count} micro-batches must be tensors of equally many rows, at least {self._count}; you "
                f"gave {[tuple(value.shape) if is_tensor(value) else type(value).__name__ for value in values]}"
            )
        (rows,) = sizes
        ends = [rows * number // self._count for number in range(self._count + 1)]
        parts = list(itertools.pairwise(ends))
        inputs = [tuple(v[a:b].detach() if is_tensor(v) else v for v in values) for a, b in parts]
        return inputs, [(b - a) / rows for a, b in parts]

    def _run(
        self, schedule: Schedule, inputs: list[tuple[Any, ...]], targets: list[Any] | None, rows: list[float]
    ) -> list[StageReport]:
        step, last = next(_steps), len(self._stages) - 1
        plans = [
            StagePlan(
                step=step,
                index=index,
                actions=schedule(index, last + 1, self._count),
                before=self._addresses[index - 1] if index else None,
                after=self._addresses[index + 1] if index < last else None,
                inputs=[] if index else inputs,
                targets=targets if targets is not None and index == last else [],
                loss=self._loss if targets is not None and index == last else None,
                weights=rows,
                checkpoint=self._checkpoint,
                seconds=self._seconds,
            )
            for index in range(last + 1)
        ]
        calls: list[Future[StageReport]] = []
        try:
            for stage, plan in zip(self._stages, plans, strict=True):
                calls.append(stage.rpc_async(self._seconds + 5.0).run(plan))
            reports = wait_all(calls)
        except BaseException as error:
            self._abort(step, calls, error)
            raise
        self.timeline = Timeline.of(self._names, [report.busy for report in reports], self._offsets, self._count)
        return reports

    def _abort(self, step: int, calls: list[Future[StageReport]], error: BaseException) -> None:
        """Tell the stages that still run that the step is over, and wait until they have ended."""
        reason = f"another stage of the pipeline failed: {type(error).__name__}: {error}"
        left = [(stage, call) for stage, call in zip(self._stages, calls, strict=False) if not call.done()]
        for stage, _ in left:
            with suppress(RpcError):  # it was lost this instant, and its call fails
                stage.rpc_async(5.0).abort(step, reason)
        for _, call in left:
            with suppress(Exception):  # its own error, which the first one brought about; or it is busy for longer
                call.wait(5.0)

    def _call(self, reference: RRef[Any], function: Callable[..., Any], *args: Any) -> Future[Any]:
        return call_function(self._agent, reference.owner(), function, args, None, UNSET_RPC_TIMEOUT)

    def _offset(self, stage: RRef[Any]) -> float:
        """Return what to add to a worker's clock for ours; 0 where both are one, as on one host."""
        start = time.perf_counter()
        theirs: float = self._call(stage, time.perf_counter).wait()
        end = time.perf_counter()
        return 0.0 if start <= theirs <= end else (start + end) / 2 - theirs


def _reference(stage: Any, index: int) -> RRef[Any]:
    if isinstance(stage, RemoteModule):
        return stage.module_rref
    if not isinstance(stage, RRef):
        raise TypeError(
            f"stages[{index}] must be a RemoteModule, or an RRef to a module; you gave {type(stage).__name__}"
        )
    return stage


# -- at the stages' workers


def _make_stage(module: RRef[Module]) -> tuple[RRef[Stage], Address]:
    value = module.local_value()
    if not is_module(value):
        raise TypeError(f"a stage must be an nn.Module; the reference is to an object of {type(value).__name__}")
    stage = Stage(current_agent(), value)
    return RRef(stage), stage.address
