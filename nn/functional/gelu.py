"""``gelu``."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import core
from ...core.extend import Tensor, operation, unary

__all__ = ["gelu"]


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _erf_rule(xp: Any, g: Any, a: Any) -> Any:
    return g * xp.exp(-(a * a)) * (2 / math.sqrt(math.pi))


erf = getattr(core, "erf", None) or unary("erf", _erf, _erf_rule, saves="a", doc="The error function.")


@operation
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``input`` times the probability that a standard normal number is below it.

    Args:
        input: of any shape.
        approximate: "none", or "tanh" for an approximation by the hyperbolic tangent.

    Raises:
        ValueError: ``approximate`` is neither.
    """
    if approximate == "none":
        return input * (erf(input * math.sqrt(0.5)) + 1) * 0.5
    if approximate != "tanh":
        raise ValueError(f'approximate must be "none" or "tanh", and you gave {approximate!r}')
    inner = (input + input * input * input * 0.044715) * math.sqrt(2 / math.pi)
    return input * (core.tanh(inner) + 1) * 0.5
