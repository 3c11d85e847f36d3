"""``Adagrad``: steps scaled by the sum of all squared gradients so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.extend import Array
from .arithmetic import at_least, buffer, descent, in_blocks, next_step, not_differentiable, turned
from .optimizer import Group, Optimizer, Params, State


class Adagrad(Optimizer):
    """Adagrad, by Duchi, Hazan and Singer 2011 (``torch.optim.Adagrad``).

    Args:
        params: what to optimize; see ``Optimizer``.
        lr: the step size; step number n, from 0, goes with ``lr / (1 + n * lr_decay)``.
        lr_decay: see above.
        weight_decay: how much of the parameter is added to its gradient.
        initial_accumulator_value: where the sum of squares starts.
        eps: added to its root.
        maximize: go up the gradient.
        foreach, fused: have no meaning here.
        differentiable: must be false.
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
        direction = turned(grad, group)
        total[rows] += direction * direction
        value[rows] -= rate * (direction / (np.sqrt(total[rows]) + group["eps"]))

    def _rate(self, step: int, group: Group) -> float:
        rate: float = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        return rate
