"""``RMSprop``: steps divided by the root of a running average of squared gradients."""

from __future__ import annotations

import numpy as np

from ..core.extend import Array
from .arithmetic import (
    at_least,
    average_in,
    average_square_in,
    buffer,
    descent,
    in_blocks,
    next_step,
    not_differentiable,
)
from .optimizer import Group, Optimizer, Params, State
from .together import elementwise


class RMSprop(Optimizer):
    """RMSprop, by Hinton 2012 (lecture 6e); centered, by Graves 2013 (``torch.optim.RMSprop``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the step size.
        alpha: decay rate of the running average of the squared gradient.
        eps: added to the square root of the average.
        weight_decay: L2 penalty: ``weight_decay * parameter`` is added to the gradient.
        momentum: factor of the previous step that is added to each step.
        centered: divide by the square root of the variance instead.
        maximize: maximize the objective, not minimize it.
        foreach: accepted for compatibility, and ignored.
        capturable: accepted for compatibility, and ignored.
        differentiable: must be False: a step cannot be recorded.

    Raises:
        ValueError: an option is out of its range, or ``differentiable`` is True.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "alpha", "eps", "weight_decay", "momentum"):
            at_least(name, group[name])

    @elementwise
    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        next_step(state)
        wanted = {"square_avg": True, "grad_avg": group["centered"], "momentum_buffer": group["momentum"] > 0}
        used = [name for name, used in wanted.items() if used]
        for block, gradient, *arrays in in_blocks(value, grad, *(buffer(state, name, value) for name in used)):
            _update(group, block, gradient, **dict(zip(used, arrays)))


def _update(
    group: Group,
    value: Array,
    grad: Array,
    square_avg: Array,
    grad_avg: Array | None = None,
    momentum_buffer: Array | None = None,
) -> None:
    direction = descent(grad, value, group)
    average_square_in(square_avg, direction, group["alpha"])
    if grad_avg is None:
        denominator = np.sqrt(square_avg)
    else:
        average_in(grad_avg, direction, 1 - group["alpha"])
        denominator = np.sqrt(square_avg - grad_avg * grad_avg)
    denominator += group["eps"]
    step = np.divide(direction, denominator, out=denominator)
    if momentum_buffer is not None:
        momentum_buffer *= group["momentum"]
        momentum_buffer += step
        step = momentum_buffer
    value -= group["lr"] * step
