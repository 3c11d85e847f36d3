"""``StageOptimizers``: one optimizer on the worker of each stage of a pipeline, and clipping by the norm of all gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.errors import AutogradError
from ..core import Tensor
from ..core.futures import wait_all
from ..rpc.extend import UNSET_RPC_TIMEOUT, Agent, call_function
from ..rref import RRef
from .stage import Stage
from .tensors import clip, total_norm


class StageOptimizers:
    """Optimizers of the parameters of a pipeline's stages; ``Pipeline.optimizer`` makes it.

    Args:
        agent: of this worker.
        stages: references to the stages. One without parameters gets no optimizer.
        optimizer_class: made on each worker as ``optimizer_class(parameters, *args, **kwargs)``.
        args, kwargs: further arguments for it.

    Raises:
        ValueError: no stage has parameters.
        Exception: the error of the constructor on a worker.
    """

    def __init__(
        self,
        agent: Agent,
        stages: Sequence[RRef[Stage]],
        optimizer_class: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._agent = agent
        self._stages = stages
        made = self._ask(stages, _make, optimizer_class, args, kwargs)
        self._optimizers: list[RRef[Any]] = [optimizer for optimizer in made if optimizer is not None]
        if not self._optimizers:
            raise ValueError("no stage of the pipeline has parameters, so there is nothing to optimize")

    def step(self, zero_grad: bool = True) -> None:
        """Let all optimizers step.

        Args:
            zero_grad: remove the gradients afterwards.
        """
        self._ask(self._optimizers, _step, zero_grad)

    def zero_grad(self) -> None:
        """Remove the gradients of all stages."""
        self._ask(self._optimizers, _zero_grad)

    def set_options(self, **options: Any) -> None:
        """Set options of all parameter groups, such as ``lr``."""
        self._ask(self._optimizers, _set_options, options)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
        """Scale the gradients of all stages by ``max_norm / norm`` if that is below 1, where ``norm`` is that of all of them.

        Args:
            max_norm: the largest norm.
            norm_type: order of the norm, above 0; ``inf`` is the largest element.
            error_if_nonfinite: whether to raise if the norm is nan or infinite.

        Returns:
            The norm before, a 0-d float64 tensor.

        Raises:
            AutogradError: ``error_if_nonfinite``, and the norm is nan or infinite.
        """
        norms = self._ask(self._stages, _norm, float(norm_type))
        total = Tensor(np.asarray(np.linalg.norm(np.array(norms, np.float64), float(norm_type))))
        if error_if_nonfinite and not np.isfinite(total.item()):
            raise AutogradError(
                f"the norm of the gradients of all stages is {total.item()}; look for what made them so"
            )
        self._ask(self._stages, _scale, max_norm, total)
        return total

    def _ask(self, references: Sequence[RRef[Any]], function: Callable[..., Any], *args: Any) -> list[Any]:
        return wait_all(
            call_function(self._agent, each.owner(), function, (each, *args), None, UNSET_RPC_TIMEOUT)
            for each in references
        )


# -- at the stages' workers


def _make(stage: RRef[Stage], optimizer_class: Callable[..., Any], args: Any, kwargs: Any) -> RRef[Any] | None:
    parameters = list(stage.local_value().module.parameters())
    return RRef(optimizer_class(parameters, *args, **kwargs)) if parameters else None


def _step(optimizer: RRef[Any], zero_grad: bool) -> None:
    optimizer.local_value().step()
    if zero_grad:
        optimizer.local_value().zero_grad()


def _zero_grad(optimizer: RRef[Any]) -> None:
    optimizer.local_value().zero_grad()


def _set_options(optimizer: RRef[Any], options: dict[str, Any]) -> None:
    for group in optimizer.local_value().param_groups:
        group.update(options)


def _gradients(stage: RRef[Stage]) -> list[Tensor]:
    return [p.grad for p in stage.local_value().module.parameters() if p.grad is not None]


def _norm(stage: RRef[Stage], order: float) -> float:
    return total_norm(_gradients(stage), order)


def _scale(stage: RRef[Stage], max_norm: float, total: Tensor) -> None:
    clip(list(stage.local_value().module.parameters()), max_norm, total)
