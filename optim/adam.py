"""``Adam`` and ``AdamW``: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

import math

import numpy as np

from ..core.extend import Array, Tensor
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
    with_spare,
)
from .optimizer import Group, Optimizer, Params, State
from .together import elementwise


class Adam(Optimizer):
    """Adam, by Kingma and Ba 2015 (``torch.optim.Adam``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the step size.
        betas: decay rates of the running averages of the gradient and of its square, from 0 to below 1.
        eps: added to the square root of the average square, so that the quotient is finite.
        weight_decay: L2 penalty: ``weight_decay * parameter`` is added to the gradient.
        amsgrad: divide by the largest average square so far (Reddi et al. 2018).
        maximize: maximize the objective, not minimize it.
        decoupled_weight_decay: multiply the parameter by ``1 - lr * weight_decay`` instead, as ``AdamW`` does.
        foreach: accepted for compatibility, and ignored.
        capturable: accepted for compatibility, and ignored.
        fused: accepted for compatibility, and ignored.
        differentiable: must be False: a step cannot be recorded.

    Raises:
        ValueError: an option is out of its range, or ``differentiable`` is True.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay"):
            at_least(name, group[name])
        check_betas(group["betas"])
        if len({isinstance(beta, Tensor) for beta in group["betas"]}) > 1:
            raise ValueError("betas must be two numbers or two tensors, and you gave one of each")

    @elementwise
    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        step = next_step(state)
        buffers = [buffer(state, name, value) for name in ("exp_avg", "exp_avg_sq")]
        if group["amsgrad"]:
            buffers.append(buffer(state, "max_exp_avg_sq", value))
        for spare, block in with_spare(in_blocks(value, grad, *buffers)):
            _update(group, step, spare, *block)


def _update(
    group: Group,
    step: int,
    spare: Array,
    value: Array,
    grad: Array,
    average: Array,
    square: Array,
    largest: Array | None = None,
) -> None:
    beta1, beta2 = group["betas"]
    direction = decayed_descent(grad, value, group)
    average_in(average, direction, 1 - beta1, spare)
    average_square_in(square, direction, beta2, spare)
    if largest is not None:
        square = np.maximum(largest, square, out=largest)
    # lr / (1 - beta1**t) * average / (sqrt(square / (1 - beta2**t)) + eps), with fewer passes over the arrays.
    root = math.sqrt(1 - beta2**step)
    change = np.sqrt(square, out=spare)
    change += group["eps"] * root
    np.divide(average, change, out=change)
    change *= group["lr"] / (1 - beta1**step) * root
    value -= change


class AdamW(Adam):
    """Adam with decoupled weight decay, by Loshchilov and Hutter 2019 (``torch.optim.AdamW``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the step size.
        betas: decay rates of the running averages of the gradient and of its square, from 0 to below 1.
        eps: added to the square root of the average square, so that the quotient is finite.
        weight_decay: each step multiplies the parameter by ``1 - lr * weight_decay``.
        amsgrad: divide by the largest average square so far (Reddi et al. 2018).
        maximize: maximize the objective, not minimize it.
        foreach: accepted for compatibility, and ignored.
        capturable: accepted for compatibility, and ignored.
        differentiable: must be False: a step cannot be recorded.
        fused: accepted for compatibility, and ignored.

    Raises:
        ValueError: an option is out of its range, or ``differentiable`` is True.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            differentiable=differentiable,
            decoupled_weight_decay=True,
        )
