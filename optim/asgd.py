"""``ASGD``: gradient descent that keeps the average of where it has been."""

from __future__ import annotations

from ..core.extend import Array
from .arithmetic import at_least, buffer, descent, in_blocks, next_step, not_differentiable
from .optimizer import Group, Optimizer, Params, State


class ASGD(Optimizer):
    """Averaged stochastic gradient descent, by Polyak and Juditsky 1992 (``torch.optim.ASGD``).

    The average of a parameter is the entry "ax" of its state.

    Args:
        params: what to optimize; see ``Optimizer``.
        lr: the first step size; that of step ``n`` is ``lr / (1 + lambd * lr * n) ** alpha``.
        lambd: how much of the parameter falls away in a step, times the step size.
        alpha: how fast the step size falls.
        t0: the step from which on the average is one; before, it follows the parameter.
        weight_decay: how much of the parameter is added to its gradient.
        maximize: go up the gradient.
        foreach, capturable: have no meaning here.
        differentiable: must be false.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        not_differentiable(differentiable)
        options = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "weight_decay"):
            at_least(name, group[name])

    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        rate, share = state.setdefault("eta", group["lr"]), state.setdefault("mu", 1.0)
        step = next_step(state)
        for block, gradient, average in in_blocks(value, grad, buffer(state, "ax", value)):
            direction = descent(gradient, block, group)
            block *= 1 - group["lambd"] * rate
            block -= rate * direction
            average += share * (block - average)
        state["eta"] = group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"]
        state["mu"] = 1 / max(1, step - group["t0"])
