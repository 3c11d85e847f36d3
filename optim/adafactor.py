"""``Adafactor``: like Adam, but for a matrix it keeps only the means of the squared gradients of rows and of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.extend import Array, Tensor
from .arithmetic import at_least, average_in, buffer, next_step, signed
from .optimizer import Group, Optimizer, Params, State


class Adafactor(Optimizer):
    """Adafactor, by Shazeer and Stern 2018, for large models: it needs little memory (``torch.optim.Adafactor``).

    Args:
        params: parameters to optimize; see ``Optimizer``.
        lr: the largest relative step size; that of step ``n`` is at most ``n ** -0.5``.
        beta2_decay: step ``n`` enters the average of squares with the weight ``n ** beta2_decay``.
        eps: lower bounds: of the root of a mean square gradient (``None`` is the dtype's epsilon), and of the root mean square
            of a parameter.
        d: upper bound of the root mean square of a step, before it is multiplied by the step size.
        weight_decay: each step multiplies the parameter by ``1 - lr * weight_decay``.
        foreach: accepted for compatibility, and ignored.
        maximize: maximize the objective, not minimize it.

    Raises:
        RuntimeError: a parameter is complex.
        ValueError: an option is out of its range.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        at_least("lr", group["lr"])
        at_least("weight_decay", group["weight_decay"])
        at_least("d", group["d"], 1.0)
        at_least("-beta2_decay", -group["beta2_decay"])
        for number, eps in enumerate(group["eps"]):
            at_least(f"eps[{number}]", eps or 0.0)

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1]["params"]:
            if parameter.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")

    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        step = next_step(state)
        smallest = np.finfo(value.dtype).eps if group["eps"][0] is None else group["eps"][0]
        rate = min(group["lr"], step**-0.5) * max(group["eps"][1], _root_mean_square(value))
        direction = signed(grad, group)
        squares = _squares(direction, state, step ** group["beta2_decay"], float(smallest))
        change = direction / np.sqrt(np.maximum(squares, smallest * smallest)).astype(value.dtype)
        rate /= max(1.0, _root_mean_square(change) / group["d"])
        if group["weight_decay"]:
            value *= 1 - group["lr"] * group["weight_decay"]
        value -= rate * change

    def restored(self, state: Mapping[str, Any], parameter: Tensor, number: Any) -> State:
        # The means have other shapes than the parameter.
        means = {name: state[name] for name in ("row_var", "col_var") if name in state}
        rest = super().restored({name: value for name, value in state.items() if name not in means}, parameter, number)
        return {**rest, **{name: Tensor(np.array(each, parameter.dtype)) for name, each in means.items()}}


def _root_mean_square(x: Array) -> float:
    return float(np.linalg.norm(x.reshape(-1))) / max(x.size, 1) ** 0.5


def _squares(grad: Array, state: State, share: float, smallest: float) -> Array:
    """Return the average squares of gradients; those of a matrix are estimated from the means of its rows and columns."""
    if grad.ndim < 2:
        variance = buffer(state, "variance", grad)
        average_in(variance, grad * grad, share)
        return variance
    squares = grad * grad
    means = [np.asarray(squares.mean(axis, keepdims=True)) for axis in (-1, -2)]
    rows, columns = (buffer(state, name, mean) for name, mean in zip(("row_var", "col_var"), means))
    average_in(rows, means[0], share)
    average_in(columns, means[1], share)
    return rows @ columns / np.maximum(rows.mean(-2, keepdims=True), smallest)
