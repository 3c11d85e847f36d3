"""Rounding; its gradient is 0, except for that of ``frac``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled
from ...operation import delivered, operation
from ...tensors import Tensor
from ...types import Array
from ..table.factories import exact, flat
from ..table.in_place import inplace
from ..table.nodes import Row, record

__all__ = [
    "ceil",
    "floor",
    "frac",
    "round",
    "trunc",
]
METHODS = __all__


def _whole(function: Any) -> Any:
    def forward(x: Array) -> Any:
        return x.copy() if x.dtype.kind in "biu" else function(x)

    return forward


floor = exact("floor", _whole(np.floor), None, doc="The largest whole number that is not above it.")
ceil = exact("ceil", _whole(np.ceil), None, doc="The smallest whole number that is not below it.")
trunc = exact("trunc", _whole(np.trunc), None, doc="It without what comes after the point.")
frac = exact("frac", lambda x: x - np.trunc(x), lambda xp, g: g, doc="What comes after the point, with its sign.")

_ROUND = Row("round", flat)


@operation
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest number with that many decimals (tens, hundreds for negative ones); halves go to the even one."""
    x = input._array
    if x.dtype.kind == "c":
        raise TypeError("complex numbers are not rounded; round .real and .imag")
    result = Tensor(x.copy() if x.dtype.kind in "biu" and decimals >= 0 else np.round(x, decimals))
    if input._requires_grad and is_grad_enabled():
        record(_ROUND, result, (input,), ())
    return delivered("round", result, out)


IN_PLACE = {f"{each.__name__}_": inplace(each, keeps="never") for each in (ceil, floor, frac, round, trunc)}
