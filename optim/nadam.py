"""``NAdam``: Adam with Nesterov's momentum."""

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


class NAdam(Optimizer):
    """NAdam, by Dozat 2016 (``torch.optim.NAdam``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the step size.
        betas: decay rates of the running averages of the gradient and of its square, from 0 to below 1.
        eps: added to the square root of the average square, so that the quotient is finite.
        weight_decay: L2 penalty: ``weight_decay * parameter`` is added to the gradient.
        momentum_decay: the momentum of step ``t`` is ``betas[0] * (1 - 0.5 * 0.96 ** (t * momentum_decay))``.
        decoupled_weight_decay: multiply the parameter by ``1 - lr * weight_decay`` instead.
        maximize: maximize the objective, not minimize it.
        foreach: accepted for compatibility, and ignored.
        capturable: accepted for compatibility, and ignored.
        differentiable: must be False: a step cannot be recorded.

    Raises:
        ValueError: an option is out of its range, or ``differentiable`` is True.
    """

    numbers_of_state = frozenset({"mu_product"})

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay", "momentum_decay"):
            at_least(name, group[name])
        check_betas(group["betas"])

    @elementwise
    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        step = next_step(state)
        beta1, beta2 = group["betas"]
        now, then = (beta1 * (1 - 0.5 * 0.96 ** (at * group["momentum_decay"])) for at in (step, step + 1))
        product = state["mu_product"] = state.get("mu_product", 1.0) * now
        weights = (
            group["lr"] * (1 - now) / (1 - product),  # of the gradient
            group["lr"] * then / (1 - product * then),  # of the average, as it will be weighted in the next step
        )
        root = math.sqrt(1 - beta2**step)
        buffers = (buffer(state, name, value) for name in ("exp_avg", "exp_avg_sq"))
        for block in in_blocks(value, grad, *buffers):
            _update(group, weights, root, *block)


def _update(
    group: Group, weights: tuple[float, float], root: float, value: Array, grad: Array, average: Array, square: Array
) -> None:
    direction = decayed_descent(grad, value, group)
    average_in(average, direction, 1 - group["betas"][0])
    average_square_in(square, direction, group["betas"][1])
    denominator = np.sqrt(square)
    denominator /= root
    denominator += group["eps"]
    value -= (weights[0] * direction + weights[1] * average) / denominator
