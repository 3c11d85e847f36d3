"""``Muon``: steps of matrices whose singular values are all made nearly equal."""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import ArgumentValueError
from ..core.extend import Array
from .arithmetic import at_least, buffer
from .optimizer import Group, Optimizer, Params, State


def _original(rows: int, columns: int) -> float:
    return math.sqrt(max(1, rows / columns))


def _of_adamw(rows: int, columns: int) -> float:
    return 0.2 * math.sqrt(max(rows, columns))


_RATES = {None: _original, "original": _original, "match_rms_adamw": _of_adamw}


class Muon(Optimizer):
    """Momentum orthogonalized by Newton and Schulz's iteration, by Jordan et al. 2024 (``torch.optim.Muon``).

    It is for the weights of hidden layers; train embeddings, biases and other vectors with another optimizer. PyTorch
    orthogonalizes in bfloat16, this class in the dtype of the parameters, so that their steps differ by up to a hundredth.

    Args:
        params: parameters to optimize, real matrices; see ``Optimizer``.
        lr: learning rate.
        weight_decay: factor, times ``lr``, by which parameters shrink in a step.
        momentum: share of the momentum that a step keeps.
        nesterov: whether the step looks ahead: gradient and momentum are mixed once more.
        ns_coefficients: coefficients a, b, c of an iteration ``X -> a X + (b A + c A A) X`` with ``A = X X.T``.
        eps: the smallest norm that a matrix is divided by.
        ns_steps: number of iterations, below 100.
        adjust_lr_fn: factor of the learning rate for the shape (rows, columns): "original", also by default, is
            ``sqrt(max(1, rows / columns))``; "match_rms_adamw" is ``0.2 * sqrt(max(rows, columns))``, for learning rates of
            AdamW (Moonshot 2025).

    Raises:
        ValueError: an option is out of its range, or a parameter is not a real matrix.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-07,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        for name in ("lr", "weight_decay", "momentum"):
            at_least(name, group[name])
        if group["adjust_lr_fn"] not in _RATES:
            raise ValueError(
                f'adjust_lr_fn must be "original", "match_rms_adamw" or None, and you gave {group["adjust_lr_fn"]!r}'
            )
        if len(group["ns_coefficients"]) != 3 or not 0 <= group["ns_steps"] < 100:
            raise ValueError("ns_coefficients must be three numbers, and ns_steps be below 100")
        for parameter in group["params"]:
            if parameter.ndim != 2 or parameter.is_complex():
                raise ArgumentValueError(  # PyTorch raises RuntimeError for complex ones, when it steps
                    f"Muon takes real matrices, and you gave a parameter of shape {parameter.shape} and {parameter.dtype}; "
                    "use another optimizer for that one"
                )

    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        momentum = buffer(state, "momentum_buffer", value)
        momentum += (1 - group["momentum"]) * (grad - momentum)
        step = grad + group["momentum"] * (momentum - grad) if group["nesterov"] else momentum
        rate = group["lr"] * _RATES[group["adjust_lr_fn"]](*value.shape)
        value *= 1 - group["lr"] * group["weight_decay"]
        value -= rate * _orthogonalized(step, group)


def _orthogonalized(x: Array, group: Group) -> Array:
    """Return a matrix of the singular vectors of ``x``, and singular values near 1."""
    if x.shape[0] > x.shape[1]:  # fewer rows than columns make the square products small
        return _orthogonalized(x.T, group).T
    a, b, c = group["ns_coefficients"]
    x = x / max(float(np.linalg.norm(x)), group["eps"])
    for _ in range(group["ns_steps"]):
        square = x @ x.T
        x = a * x + (b * square + c * (square @ square)) @ x
    return x
