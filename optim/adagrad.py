"""``Adagrad``: steps scaled by the sum of all squared gradients so far."""

from __future__ import annotations

import numpy as np

from ..core.extend import Array
from .optimizer import Group, Optimizer, Params, State, at_least, buffer, not_differentiable


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
        step = state["step"] = state.get("step", 0) + 1
        direction = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            direction = direction + group["weight_decay"] * value
        total = buffer(state, "sum", value, group["initial_accumulator_value"])
        total += direction * direction
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        value -= rate * (direction / (np.sqrt(total) + group["eps"]))
