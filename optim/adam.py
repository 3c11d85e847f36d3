"""``Adam`` and ``AdamW``: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

import math

import numpy as np

from ..core.extend import Array
from .optimizer import Group, Optimizer, Params, State, at_least, buffer, not_differentiable


class Adam(Optimizer):
    """Adam, by Kingma and Ba 2015 (``torch.optim.Adam``).

    Args:
        params: what to optimize; see ``Optimizer``.
        lr: the step size.
        betas: how much of the averages of the gradient and of its square stays, at each step.
        eps: added to the root of the average square.
        weight_decay: how much of the parameter is added to its gradient.
        amsgrad: divide by the largest average square so far (Reddi et al. 2018).
        maximize: go up the gradient.
        decoupled_weight_decay: shrink the parameter itself by ``lr * weight_decay`` instead, as ``AdamW`` does.
        foreach, capturable, fused: have no meaning here.
        differentiable: must be false.
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
        for index, beta in enumerate(group["betas"]):
            if not 0 <= beta < 1:
                raise ValueError(f"betas[{index}] must be at least 0 and below 1, and you gave {beta}")

    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        step = state["step"] = state.get("step", 0) + 1
        direction = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            if group["decoupled_weight_decay"]:
                value *= 1 - group["lr"] * group["weight_decay"]
            else:
                direction = direction + group["weight_decay"] * value
        beta1, beta2 = group["betas"]
        average = buffer(state, "exp_avg", value)
        average += (direction - average) * (1 - beta1)
        square = buffer(state, "exp_avg_sq", value)
        square *= beta2
        square += (1 - beta2) * direction * direction
        if group["amsgrad"]:
            largest = buffer(state, "max_exp_avg_sq", value)
            square = np.maximum(largest, square, out=largest)
        denominator = np.sqrt(square) / math.sqrt(1 - beta2**step) + group["eps"]
        value -= (group["lr"] / (1 - beta1**step)) * (average / denominator)


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves (``torch.optim.AdamW``; Loshchilov and Hutter 2019)."""

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
