"""``recorded``: what arrives is the same in all threads, whether ``no_grad()`` or ``inference_mode()`` is on in one or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def recorded(make: Callable[P, R]) -> Callable[P, R]:
    """Return a function that runs ``make`` as where PyTorch records operations.

    The thread that waits for an answer may make its tensors, or one that reads for others: as in PyTorch's RPC, the modes of
    neither matter.

    Args:
        make: makes or takes apart tensors that travel.
    """

    @wraps(make)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():  # the usual case
            return make(*args, **kwargs)
        with torch.inference_mode(False), torch.enable_grad():
            return make(*args, **kwargs)

    return run
