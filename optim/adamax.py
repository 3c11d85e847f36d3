"""``Adamax``: Adam with the largest gradient so far in place of the root of the average square."""

from __future__ import annotations

import numpy as np

from ..core.extend import Array
from .arithmetic import at_least, average_in, buffer, check_betas, descent, in_blocks, next_step, not_differentiable
from .optimizer import Group, Optimizer, Params, State


class Adamax(Optimizer):
    """Adamax, the variant of Adam on the infinity norm, by Kingma and Ba 2015 (``torch.optim.Adamax``).

    Args:
        params: what to optimize; see ``Optimizer``.
        lr: the step size.
        betas: how much of the average gradient and of the largest gradient stays, at each step.
        eps: added to each gradient's size.
        weight_decay: how much of the parameter is added to its gradient.
        maximize: go up the gradient.
        foreach, capturable: have no meaning here.
        differentiable: must be false.
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
