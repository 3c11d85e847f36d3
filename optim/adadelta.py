"""``Adadelta``: steps scaled by running averages of squared gradients and of squared steps."""

from __future__ import annotations

import numpy as np

from ..core.extend import Array
from .arithmetic import at_least, average_square_in, buffer, descent, in_blocks, next_step, not_differentiable
from .optimizer import Group, Optimizer, Params, State
from .together import elementwise


class Adadelta(Optimizer):
    """Adadelta, by Zeiler 2012 (``torch.optim.Adadelta``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: factor of the step.
        rho: decay rate of the running averages, from 0 to 1.
        eps: added to the averages before the square roots.
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
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay"):
            at_least(name, group[name])
        if not 0 <= group["rho"] <= 1:
            raise ValueError(f"rho must be between 0 and 1, and you gave {group['rho']}")

    @elementwise
    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        next_step(state)
        buffers = (buffer(state, name, value) for name in ("square_avg", "acc_delta"))
        for block in in_blocks(value, grad, *buffers):
            _update(group, *block)


def _update(group: Group, value: Array, grad: Array, square: Array, steps: Array) -> None:
    direction = descent(grad, value, group)
    average_square_in(square, direction, group["rho"])
    step = np.sqrt(steps + group["eps"])
    step /= np.sqrt(square + group["eps"])
    step *= direction
    average_square_in(steps, step, group["rho"])
    value -= group["lr"] * step
