"""``Rprop``: steps whose sizes depend on the signs of gradients only."""

from __future__ import annotations

import numpy as np

from ..core.extend import Array
from .arithmetic import at_least, buffer, next_step, not_differentiable, turned
from .optimizer import Group, Optimizer, Params, State


class Rprop(Optimizer):
    """Resilient backpropagation, by Riedmiller and Braun 1993 (``torch.optim.Rprop``).

    Args:
        params: what to optimize; see ``Optimizer``.
        lr: the first step size.
        etas: a step size is multiplied by the first when its gradient changed sign, by the second when it kept it.
        step_sizes: the smallest and the largest step size.
        maximize: go up the gradient.
        foreach, capturable: have no meaning here.
        differentiable: must be false.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        at_least("lr", group["lr"])
        minus, plus = group["etas"]
        if not 0 < minus < 1 < plus:
            raise ValueError(f"etas must be below and above 1, both positive, and you gave {group['etas']}")

    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        next_step(state)
        former = buffer(state, "prev", value)
        sizes = buffer(state, "step_size", value, group["lr"])
        minus, plus = group["etas"]
        direction = turned(grad, group)
        signs = np.sign(direction * former)
        sizes *= np.where(signs > 0, plus, np.where(signs < 0, minus, 1)).astype(sizes.dtype)
        np.clip(sizes, *group["step_sizes"], out=sizes)
        # Where the sign changed the minimum was overstepped: this step is left out, and the next finds no former sign.
        former[...] = np.where(signs < 0, 0, direction)
        value -= np.sign(former) * sizes
