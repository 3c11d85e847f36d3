"""``Rprop``: steps whose sizes depend on the signs of gradients only."""

from __future__ import annotations

import numpy as np

from ..core.extend import Array
from .arithmetic import at_least, buffer, next_step, not_differentiable, signed
from .optimizer import Group, Optimizer, Params, State
from .together import elementwise


class Rprop(Optimizer):
    """Resilient backpropagation, by Riedmiller and Braun 1993 (``torch.optim.Rprop``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the first step size.
        etas: factors of a step size: the first, below 1, when its gradient changed sign; the second, above 1, when it did not.
        step_sizes: the smallest and the largest step size.
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

    @elementwise
    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        next_step(state)
        former = buffer(state, "prev", value)
        sizes = buffer(state, "step_size", value, group["lr"])
        minus, plus = group["etas"]
        direction = signed(grad, group)
        signs = np.sign(direction * former)
        sizes *= np.where(signs > 0, plus, np.where(signs < 0, minus, 1)).astype(sizes.dtype)
        np.clip(sizes, *group["step_sizes"], out=sizes)
        # Where the sign changed, the step went beyond a minimum: leave out this step, and let the next one have no former sign.
        former[...] = np.where(signs < 0, 0, direction)
        value -= np.sign(former) * sizes
