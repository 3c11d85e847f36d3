"""``RAdam``: Adam that uses its average square only when the variance of that is known."""

from __future__ import annotations

import math

import numpy as np

from ..core.extend import Array
from .arithmetic import (
    at_least,
    average_in,
    average_square_in,
    buffer,
    check_betas,
    decayed_descent,
    in_blocks,
    next_step,
    not_differentiable,
)
from .optimizer import Group, Optimizer, Params, State
from .together import elementwise


class RAdam(Optimizer):
    """Rectified Adam, by Liu et al. 2020 (``torch.optim.RAdam``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the step size.
        betas: decay rates of the running averages of the gradient and of its square, from 0 to below 1.
        eps: added to the square root of the average square, so that the quotient is finite.
        weight_decay: L2 penalty: ``weight_decay * parameter`` is added to the gradient.
        decoupled_weight_decay: multiply the parameter by ``1 - lr * weight_decay`` instead.
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
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay"):
            at_least(name, group[name])
        check_betas(group["betas"])

    @elementwise
    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        step = next_step(state)
        rectified = _rectification(step, group["betas"][1])
        buffers = (buffer(state, name, value) for name in ("exp_avg", "exp_avg_sq"))
        for block in in_blocks(value, grad, *buffers):
            _update(group, step, rectified, *block)


def _rectification(step: int, beta2: float) -> float | None:
    """Return the correction of the step for the variance of the average square; ``None`` while that is not known."""
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * beta2**step / (1 - beta2**step)
    if length <= 5:
        return None
    return math.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))


def _update(
    group: Group, step: int, rectified: float | None, value: Array, grad: Array, average: Array, square: Array
) -> None:
    beta1, beta2 = group["betas"]
    direction = decayed_descent(grad, value, group)
    average_in(average, direction, 1 - beta1)
    average_square_in(square, direction, beta2)
    change = average * (group["lr"] / (1 - beta1**step))
    if rectified is not None:
        change *= math.sqrt(1 - beta2**step) * rectified
        change /= np.sqrt(square) + group["eps"]
    value -= change
