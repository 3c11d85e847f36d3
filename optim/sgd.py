"""``SGD``: stochastic gradient descent, with momentum."""

from __future__ import annotations

import numpy as np

from ..core.extend import Array, Tensor
from .optimizer import Group, Optimizer, Params, State, at_least, not_differentiable


class SGD(Optimizer):
    """Stochastic gradient descent (``torch.optim.SGD``).

    With momentum: ``buffer = momentum * buffer + (1 - dampening) * grad`` (at first the gradient itself), and a step goes
    along the buffer, or with Nesterov's along ``grad + momentum * buffer``.

    Args:
        params: what to optimize; see ``Optimizer``.
        lr: the step size.
        momentum: how much of the buffer stays.
        dampening: how much of the gradient does not enter it.
        weight_decay: how much of the parameter is added to its gradient.
        nesterov: see above; needs momentum and no dampening.
        maximize: go up the gradient.
        foreach, fused: have no meaning here.
        differentiable: must be false.
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
        direction = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            direction = direction + group["weight_decay"] * value
        if group["momentum"]:
            direction = self._with_momentum(direction, state, group)
        np.subtract(value, group["lr"] * direction, out=value)

    def _with_momentum(self, direction: Array, state: State, group: Group) -> Array:
        if state.get("momentum_buffer") is None:
            state["momentum_buffer"] = Tensor(direction.copy())
            momentum: Array = state["momentum_buffer"].numpy()
        else:
            momentum = state["momentum_buffer"].numpy()
            momentum *= group["momentum"]
            momentum += (1 - group["dampening"]) * direction
        return direction + group["momentum"] * momentum if group["nesterov"] else momentum
