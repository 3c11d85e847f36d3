"""Steps of PyTorch's optimizers, without what PyTorch puts around each: a record for its profiler, and a mark for its compiler.

PyTorch's own RPC has neither: its steps are compiled. They take about as long as a step of a few small parameters.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import (
    _global_optimizer_post_hooks,
    _global_optimizer_pre_hooks,
    _use_grad_for_differentiable,
)


def _no_step(optimizer: Any) -> None: ...


# Code of what PyTorch puts around ``step`` of each class: it calls hooks, and makes the record.
RECORDS: Any = Optimizer.profile_hook_step(_no_step).__code__
# Code of what is below that in most classes: it turns recording off, unless the step is to be differentiated.
WITHOUT_GRAD: Any = _use_grad_for_differentiable(_no_step).__code__


def do_step(optimizer: Any) -> None:
    """Do a step of an optimizer for PyTorch's parameters.

    Args:
        optimizer: of a class of PyTorch's or a user's.
    """
    step: Any = getattr(type(optimizer), "step", None)
    if getattr(step, "__code__", None) is not RECORDS or "step" in vars(optimizer) or _is_watched(optimizer):
        optimizer.step()
        return
    step = step.__wrapped__
    if getattr(step, "__code__", None) is not WITHOUT_GRAD or optimizer.defaults["differentiable"]:
        step(optimizer)
        return
    with torch.set_grad_enabled(False):  # ``no_grad`` makes more calls
        step.__wrapped__(optimizer)


def _is_watched(optimizer: Optimizer) -> bool:
    """Return whether hooks are to be called, or PyTorch's profiler runs."""
    own = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    hooks = own or _global_optimizer_pre_hooks or _global_optimizer_post_hooks
    return bool(hooks or torch.autograd._profiler_enabled())
