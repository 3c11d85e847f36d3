"""``SGD``: stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.extend import Array, Tensor
from .arithmetic import (
    BLOCK,
    at_least,
    descent,
    in_blocks,
    not_differentiable,
    one_number,
    scalar,
    signed,
    with_spare,
)
from .optimizer import Group, Optimizer, Params, State


class SGD(Optimizer):
    """Stochastic gradient descent (``torch.optim.SGD``).

    With momentum, ``buffer = momentum * buffer + (1 - dampening) * grad`` (in the first step, the gradient), and a step is
    ``-lr * buffer``, or with Nesterov's momentum ``-lr * (grad + momentum * buffer)``.

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the step size.
        momentum: see above; 0 is none.
        dampening: see above.
        weight_decay: L2 penalty: ``weight_decay * parameter`` is added to the gradient.
        nesterov: use Nesterov's momentum; needs momentum above 0 and dampening 0.
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
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "momentum", "weight_decay"):
            at_least(name, group[name])
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("nesterov needs momentum above 0 and dampening 0")

    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        if not group["momentum"]:
            _descend(group, value, grad)
            return
        first = state.get("momentum_buffer") is None
        if first:
            state["momentum_buffer"] = Tensor(np.zeros_like(value))
        for arrays in in_blocks(value, grad, state["momentum_buffer"].numpy()):
            _update_with_momentum(group, first, *arrays)

    def update_rows(self, value: Array, rows: Any, grad: Array, state: State, group: Group) -> None:
        if group["weight_decay"]:
            raise RuntimeError("SGD takes sparse gradients only without weight_decay, which touches every row")
        if group["momentum"]:  # every row that ever had a gradient moves
            dense = np.zeros_like(value)
            dense[rows] = grad
            self.update(value, dense, state, group)
            return
        value[rows] -= group["lr"] * signed(grad, group)


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Change tensors by one step of ``SGD``, without an optimizer (``torch.optim.sgd.sgd``).

    Args:
        params: the tensors; changed in place.
        d_p_list: their gradients.
        momentum_buffer_list: their buffers of momentum, ``None`` before the first step; changed in place.
        has_sparse_grad, foreach, fused: accepted for compatibility, and ignored.
        grad_scale, found_inf: must be ``None``: they are for GPUs.
        weight_decay, momentum, lr, dampening, nesterov, maximize: as for ``SGD``.

    Raises:
        ValueError: an option is out of its range, or ``grad_scale`` or ``found_inf`` is given.
    """
    if grad_scale is not None or found_inf is not None:
        raise ValueError("grad_scale and found_inf must be None: they are for GPUs; use amp.GradScaler")
    leaf = Tensor(np.zeros(1))
    step = SGD([leaf], lr, momentum, dampening, weight_decay, nesterov, maximize=maximize)
    for index, (value, grad) in enumerate(zip(params, d_p_list, strict=True)):
        state = step.state[value] = {"momentum_buffer": momentum_buffer_list[index]}
        step._step_in_place(value, grad, step.param_groups[0])
        momentum_buffer_list[index] = state["momentum_buffer"]


def _descend(group: Group, value: Array, grad: Array) -> None:
    rate = scalar(group["lr"], value)
    if value.size <= 2 * BLOCK or not any(grad.strides):
        value -= np.multiply(descent(one_number(grad), value, group), rate)
        return
    for spare, (block, direction) in with_spare(in_blocks(value, grad)):
        np.multiply(descent(direction, block, group), rate, spare)
        np.subtract(block, spare, block)


def _update_with_momentum(group: Group, first: bool, value: Array, grad: Array, buffer: Array) -> None:
    direction = descent(grad, value, group)
    if first:
        buffer[...] = direction
    else:
        buffer *= group["momentum"]
        buffer += (1 - group["dampening"]) * direction
    step = direction + group["momentum"] * buffer if group["nesterov"] else buffer
    value -= group["lr"] * step
