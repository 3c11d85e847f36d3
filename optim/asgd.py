"""``ASGD``: gradient descent that also averages the parameters of its steps."""

from __future__ import annotations

from ..core.extend import Array
from .arithmetic import at_least, buffer, descent, in_blocks, next_step, not_differentiable
from .optimizer import Group, Optimizer, Params, State
from .together import elementwise


class ASGD(Optimizer):
    """Averaged stochastic gradient descent, by Polyak and Juditsky 1992 (``torch.optim.ASGD``).

    The average of a parameter is the entry "ax" of its state.

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the first step size; that of step ``n`` is ``lr / (1 + lambd * lr * n) ** alpha``.
        lambd: each step multiplies the parameter by ``1 - lambd`` times the step size.
        alpha: exponent with which the step size decreases.
        t0: the step at which averaging starts; before, the average equals the parameter.
        weight_decay: L2 penalty: ``weight_decay * parameter`` is added to the gradient.
        maximize: maximize the objective, not minimize it.
        foreach: accepted for compatibility, and ignored.
        capturable: accepted for compatibility, and ignored.
        differentiable: must be False: a step cannot be recorded.

    Raises:
        ValueError: an option is out of its range, or ``differentiable`` is True.
    """

    numbers_of_state = frozenset({"eta", "mu"})

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

    @elementwise
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
