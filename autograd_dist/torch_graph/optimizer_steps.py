"""Steps of PyTorch's optimizers, without a record for PyTorch's profiler if it does not run.

PyTorch makes that record in each step, but not in the steps of its own RPC, which are compiled. It takes about as long as a
step of a few small parameters.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks


def _no_step(optimizer: Any) -> None: ...


# Code of what PyTorch puts around ``step`` of each class: it calls hooks, and makes the record.
RECORDS: Any = Optimizer.profile_hook_step(_no_step).__code__


def do_step(optimizer: Any) -> None:
    """Do a step of an optimizer for PyTorch's parameters.

    Args:
        optimizer: of a class of PyTorch's or a user's.
    """
    step: Any = getattr(type(optimizer), "step", None)
    if getattr(step, "__code__", None) is not RECORDS or "step" in vars(optimizer) or _is_watched(optimizer):
        optimizer.step()
    else:
        step.__wrapped__(optimizer)


def _is_watched(optimizer: Optimizer) -> bool:
    """Return whether hooks are to be called, or PyTorch's profiler runs."""
    own = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    hooks = own or _global_optimizer_pre_hooks or _global_optimizer_post_hooks
    return bool(hooks or torch.autograd._profiler_enabled())
