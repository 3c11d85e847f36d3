"""Clipping by the norm of all gradients of a model whose parameters are spread over ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...core import Tensor
from ...nn import utils
from ..collectives import all_reduce
from ..reduction import ReduceOp


def clip_grad_norm_(
    parameters: Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    group: Any = None,
) -> Tensor:
    """Scale the gradients of all ranks by ``max_norm / norm`` if that is below 1, where ``norm`` is that of all ranks together.

    That is for parameters of which each rank has others, as the stages of a pipeline. Where all ranks have equal gradients, as
    after a backward of ``DistributedDataParallel``, ``nn.utils.clip_grad_norm_`` gives the global norm already.

    Args:
        parameters: this rank's; their ``.grad`` is scaled.
        max_norm: the largest norm.
        norm_type: order of the norm, above 0; ``inf`` is the largest element.
        error_if_nonfinite: whether to raise, on all ranks, if the norm is nan or infinite.
        group: the ranks; ``None`` for the default group.

    Returns:
        The norm before, a 0-d float64 tensor, the same on all ranks.

    Raises:
        AutogradError: ``error_if_nonfinite``, and the norm is nan or infinite.
        ValueError: ``norm_type`` is not above 0.
    """
    order = float(norm_type)
    if not order > 0:
        raise ValueError(
            f"norm_type must be above 0 to be put together from those of the ranks; you gave {norm_type!r}"
        )
    given = list(parameters)
    gradients = [parameter.grad for parameter in given if parameter.grad is not None]
    mine = float(utils.get_total_norm(gradients, order))
    total = Tensor(np.array(mine if np.isinf(order) else mine**order, np.float64))
    all_reduce(total, ReduceOp.MAX if np.isinf(order) else ReduceOp.SUM, group)
    norm = total if np.isinf(order) else total ** (1 / order)
    if error_if_nonfinite:
        utils.get_total_norm(norm, 2.0, error_if_nonfinite)
    utils.clip_grads_with_norm_(given, max_norm, norm)
    return norm
