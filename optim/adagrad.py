"""``Adagrad``: steps scaled by the sum of all squared gradients so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.extend import Array
from .arithmetic import at_least, buffer, descent, in_blocks, next_step, not_differentiable, signed
from .optimizer import Group, Optimizer, Params, State
from .together import elementwise


class Adagrad(Optimizer):
    """Adagrad, by Duchi, Hazan and Singer 2011 (``torch.optim.Adagrad``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the step size of the first step; that of step ``n``, from 0, is ``lr / (1 + n * lr_decay)``.
        lr_decay: see ``lr``.
        weight_decay: L2 penalty: ``weight_decay * parameter`` is added to the gradient.
        initial_accumulator_value: the sum of squares at the start.
        eps: added to the square root of the sum.
        maximize: maximize the objective, not minimize it.
        foreach: accepted for compatibility, and ignored.
        fused: accepted for compatibility, and ignored.
        differentiable: must be False: a step cannot be recorded.

    Raises:
        ValueError: an option is out of its range, or ``differentiable`` is True.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"):
            at_least(name, group[name])

    @elementwise
    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        rate = self._rate(next_step(state), group)
        total = buffer(state, "sum", value, group["initial_accumulator_value"])
        for block, gradient, squares in in_blocks(value, grad, total):
            direction = descent(gradient, block, group)
            squares += direction * direction
            block -= rate * (direction / (np.sqrt(squares) + group["eps"]))

    def update_rows(self, value: Array, rows: Any, grad: Array, state: State, group: Group) -> None:
        if group["weight_decay"]:
            raise RuntimeError("Adagrad takes sparse gradients only without weight_decay, which touches every row")
        rate = self._rate(next_step(state), group)
        total = buffer(state, "sum", value, group["initial_accumulator_value"])
        direction = signed(grad, group)
        total[rows] += direction * direction
        value[rows] -= rate * (direction / (np.sqrt(total[rows]) + group["eps"]))

    def _rate(self, step: int, group: Group) -> float:
        rate: float = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        return rate
