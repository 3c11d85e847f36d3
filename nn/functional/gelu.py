"""``gelu``: exact, by the error function, or approximated by the hyperbolic tangent (Hendrycks and Gimpel 2016)."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.extend import ARRAYS, Array, Row, Tensor, keep, normal_share, operation, record, records

__all__ = ["gelu"]

_SCALE = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


@operation
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return ``input * P(X <= input)`` for a standard normal X: ``input * (1 + erf(input / sqrt(2))) / 2``.

    Args:
        input: any shape, floating-point.
        approximate: "none", or "tanh" for ``input * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input ** 3))) / 2``.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: ``approximate`` is neither.
    """
    if approximate not in _ROWS:
        raise ValueError(f'approximate must be "none" or "tanh", and you gave {approximate!r}')
    if not input.is_floating_point():
        raise TypeError(f"the input must be of floating-point numbers, not {input.dtype}; convert it, as by float()")
    given = input.numpy(force=True)
    x = given if given.dtype.kind == "f" and given.itemsize > 2 else given.astype(np.float32)
    share = _share(ARRAYS, x, approximate)
    result = Tensor((x * share).astype(given.dtype, copy=False))
    return record(_ROWS[approximate], result, (input,), (keep(input),), share) if records(input) else result


def _share(xp: Any, x: Any, approximate: str) -> Any:
    """Return ``P(X <= x)``. In place where it can be: new memory costs more than the arithmetic."""
    if approximate == "none" and xp is ARRAYS and x.dtype == np.float32 and x.ndim:
        return normal_share(x)
    if approximate == "none":
        share = xp.erf(x * math.sqrt(0.5))
    else:
        share = x * x
        share *= _CUBIC * _SCALE
        share += _SCALE
        share *= x
        share = xp.tanh(share)
    share = share + 1  # not in place: the gradient of tanh needs its result
    share *= 0.5
    return share


def _rule(xp: Any, g: Any, a: Any, forward: Array) -> Any:
    slope = a * a
    slope *= -0.5
    if xp is ARRAYS and slope.ndim:
        slope = np.exp(slope, out=slope)
        slope *= math.sqrt(0.5 / math.pi)
    else:
        slope = xp.exp(slope) * math.sqrt(0.5 / math.pi)  # its gradient needs the exponential
    slope *= a
    slope += forward if xp is ARRAYS else _share(xp, a, "none")
    slope *= g
    return slope


def _tanh_rule(xp: Any, g: Any, a: Any, forward: Array) -> Any:
    share = forward if xp is ARRAYS else _share(xp, a, "tanh")
    # With t = 2 * share - 1, the slope of tanh is 1 - t * t = 4 * share * (1 - share).
    slope = a * a
    slope *= 6 * _CUBIC * _SCALE
    slope += 2 * _SCALE
    slope *= a
    slope *= share
    slope *= 1 - share
    slope += share
    slope *= g
    return slope


_ROWS = {"none": Row("gelu", _rule), "tanh": Row("gelu", _tanh_rule)}
