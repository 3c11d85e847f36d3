"""``Adamax``: Adam that divides by the largest gradient so far."""

from __future__ import annotations

import numpy as np

from ..core.extend import Array
from .arithmetic import at_least, average_in, buffer, check_betas, descent, in_blocks, next_step, not_differentiable
from .optimizer import Group, Optimizer, Params, State
from .together import elementwise


class Adamax(Optimizer):
    """Adamax, the variant of Adam on the infinity norm, by Kingma and Ba 2015 (``torch.optim.Adamax``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the step size.
        betas: decay rates of the running average of the gradient and of the largest gradient, from 0 to below 1.
        eps: added to the absolute value of each gradient.
        weight_decay: L2 penalty: ``weight_decay * parameter`` is added to the gradient.
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
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay"):
            at_least(name, group[name])
        check_betas(group["betas"])

    @elementwise
    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        beta1, beta2 = group["betas"]
        rate = group["lr"] / (1 - beta1 ** next_step(state))
        buffers = (buffer(state, name, value) for name in ("exp_avg", "exp_inf"))
        for block, gradient, average, largest in in_blocks(value, grad, *buffers):
            direction = descent(gradient, block, group)
            average_in(average, direction, 1 - beta1)
            largest *= beta2
            np.maximum(largest, np.abs(direction) + group["eps"], out=largest)
            block -= rate * average / largest
