"""``LoadedPlan``: a plan from a file, as a function of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError, CheckpointError, TelegradError
from ..core.extend import Tensor, is_grad_enabled
from .plan import Plan
from .recorded import Input
from .saved import laid_out
from .values import mapped


class LoadedPlan:
    """A plan that was read by ``load_plan``. Call it with the tensors that were arguments of the recorded call, in order.

    Numbers, texts and other arguments of that call are part of the plan. Results are those of the function, bit by bit. If it
    was recorded with gradients, they can be differentiated.

    Args:
        plan: the plan.
        tensors: those that are no arguments.
    """

    def __init__(self, plan: Plan, tensors: Sequence[Tensor]) -> None:
        self._plan, self._tensors = plan, tensors

    @property
    def label(self) -> str:
        """The name of the function, and how many operations were recorded."""
        return self._plan.label

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Descriptions of the tensors to call it with."""
        return tuple(self._plan.inputs)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters and other tensors that it uses and that are no arguments, as leaves; their elements may change."""
        return tuple(self._tensors)

    def __call__(self, *tensors: Tensor) -> Any:
        """Return the result of the function.

        Args:
            tensors: tensors with the shapes and dtypes of ``inputs``.

        Raises:
            ArgumentTypeError: one is no tensor, or of another dtype, or their number is another.
            ArgumentValueError: one has another shape, or requires grad and the plan has no gradients for it.
            CheckpointError: a call of the plan does not fit its arrays: its file was made by another program.
        """
        plan = self._plan
        if len(tensors) != len(plan.inputs):
            raise ArgumentTypeError(
                f"the plan takes {len(plan.inputs)} tensors, and you gave {len(tensors)}: those among the arguments of the "
                "recorded call"
            )
        given = [_fitting(place, *pair) for place, pair in enumerate(zip(tensors, plan.inputs))]
        if not plan.holds(given):
            raise ArgumentIndexError(
                "an integer among the arguments names no row or class of the plan: it is too large, or negative"
            )
        try:
            result = plan.replay(given)
        except (IndexError, ZeroDivisionError, TelegradError, np.linalg.LinAlgError):
            raise  # of elements of the arguments
        except Exception as error:
            raise CheckpointError(f"a call of the plan {plan.label[:60]} failed: {error}; record it again") from error
        return result if is_grad_enabled() else mapped(result, _detached)

    def __repr__(self) -> str:
        return f"LoadedPlan({self.label})"


def _detached(each: Any) -> Any:
    return each.detach() if isinstance(each, Tensor) else each


def _fitting(place: int, tensor: Any, wanted: Input) -> Tensor:
    """Return a tensor with the strides of the recorded one; raise unless it has its shape and dtype."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"argument {place} must be a tensor; you gave {type(tensor).__name__}")
    if type(tensor)._takes_over or tensor.is_sparse:
        raise ArgumentTypeError(f"argument {place} is of the class {type(tensor).__name__}; give it as a plain tensor")
    if tensor.dtype != wanted.dtype:
        raise ArgumentTypeError(
            f"argument {place} has dtype {tensor.dtype}, and the plan is for {wanted.dtype}; call it with "
            f"x.to(tg.{wanted.dtype})"
        )
    if tuple(tensor.shape) != wanted.shape:
        raise ArgumentValueError(
            f"argument {place} has shape {tuple(tensor.shape)}, and the plan is for {wanted.shape}"
        )
    if tensor._requires_grad and not wanted.requires_grad and is_grad_enabled():
        raise ArgumentValueError(
            f"argument {place} requires grad, and the plan was recorded without; pass x.detach(), or call it in no_grad()"
        )
    return laid_out(tensor, wanted.strides)
