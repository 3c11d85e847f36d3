"""``SparseAdam``: Adam that updates only the rows that have a gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.extend import Array
from .arithmetic import buffer, check_betas, next_step, signed
from .optimizer import Group, Optimizer, Params, State


class SparseAdam(Optimizer):
    """Lazy Adam for the sparse gradients of embeddings with ``sparse=True`` (``torch.optim.SparseAdam``).

    The averages of a row without a gradient do not decay.

    Args:
        params: parameters to optimize, dense and real; see ``Optimizer``.
        lr: the step size.
        betas: decay rates of the running averages of the gradient and of its square, from 0 to below 1.
        eps: added to the square root of the average square, so that the quotient is finite.
        maximize: maximize the objective, not minimize it.

    Raises:
        ValueError: an option is out of its range, or a parameter is sparse or complex.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def check_options(self, group: Group) -> None:
        if not (group["lr"] > 0 and group["eps"] > 0):
            raise ValueError(f"lr and eps must be above 0, and you gave {group['lr']} and {group['eps']}")
        check_betas(group["betas"])
        for index, parameter in enumerate(group["params"]):
            if parameter.is_sparse or parameter.is_complex():
                kind = "sparse" if parameter.is_sparse else "complex"
                raise ValueError(f"SparseAdam takes dense, real parameters, and params[{index}] is {kind}")

    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        raise RuntimeError("SparseAdam does not take dense gradients; use Adam")

    def update_rows(self, value: Array, rows: Any, grad: Array, state: State, group: Group) -> None:
        step = next_step(state)
        beta1, beta2 = group["betas"]
        direction = signed(grad, group)
        averages, squares = (buffer(state, name, value) for name in ("exp_avg", "exp_avg_sq"))
        average = averages[rows] + (direction - averages[rows]) * (1 - beta1)
        square = squares[rows] + (direction * direction - squares[rows]) * (1 - beta2)
        averages[rows], squares[rows] = average, square
        rate = group["lr"] * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        value[rows] -= rate * average / (np.sqrt(square) + group["eps"])
