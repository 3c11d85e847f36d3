"""``Adam`` and ``AdamW``: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

import math

import numpy as np

from ..core.extend import Array, Tensor
from .arithmetic import (
    at_least,
    buffer,
    check_betas,
    decayed_descent,
    next_step,
    not_differentiable,
    scalar,
)
from .optimizer import Group, Optimizer, Params, State
from .running import run
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
        numbers = _numbers(group, step, value)
        run(_update, (group, numbers), value, grad, *buffers)


def _numbers(group: Group, step: int, value: Array) -> list[Array]:
    """Return the factors of a step: the shares of a gradient and of its square in the averages, ``beta2``, ``eps`` and ``lr``.

    The last two are corrected for averages that began with zeros: ``lr / (1 - beta1**t) * average / (sqrt(square /
    (1 - beta2**t)) + eps)`` takes fewer passes over the arrays then.
    """
    beta1, beta2 = group["betas"]
    root = math.sqrt(1 - beta2**step)
    rate = group["lr"] / (1 - beta1**step) * root
    return [scalar(each, value) for each in (1 - beta1, 1 - beta2, beta2, group["eps"] * root, rate)]


def _update(
    group: Group,
    numbers: list[Array],
    spare: Array,
    value: Array,
    grad: Array,
    average: Array,
    square: Array,
    largest: Array | None = None,
) -> None:
    share, share2, beta2, eps, rate = numbers
    direction = decayed_descent(grad, value, group)
    np.subtract(direction, average, spare)
    np.multiply(spare, share, spare)
    np.add(average, spare, average)
    np.multiply(direction, direction, spare)
    np.multiply(spare, share2, spare)
    np.multiply(square, beta2, square)
    np.add(square, spare, square)
    if largest is not None:
        square = np.maximum(largest, square, out=largest)
    np.sqrt(square, spare)
    np.add(spare, eps, spare)
    np.divide(average, spare, spare)
    np.multiply(spare, rate, spare)
    np.subtract(value, spare, value)


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
