"""``gelu``: exact, by the error function, or approximated by the hyperbolic tangent (Hendrycks and Gimpel 2016)."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math

from ...core import erf, tanh
from ...core.extend import Tensor, operation

__all__ = ["gelu"]


@operation
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return ``input * P(X <= input)`` for a standard normal X: ``input * (1 + erf(input / sqrt(2))) / 2``.

    Args:
        input: any shape, floating-point.
        approximate: "none", or "tanh" for ``input * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input ** 3))) / 2``.

    Raises:
        ValueError: ``approximate`` is neither.
    """
    if approximate == "none":
        return input * (erf(input * math.sqrt(0.5)) + 1) * 0.5
    if approximate != "tanh":
        raise ValueError(f'approximate must be "none" or "tanh", and you gave {approximate!r}')
    inner = (input + input * input * input * 0.044715) * math.sqrt(2 / math.pi)
    return input * (tanh(inner) + 1) * 0.5
