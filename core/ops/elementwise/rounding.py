"""Rounding; its gradient is 0, except for that of ``frac``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled
from ...tensors import Tensor
from ...types import Array
from ..table.factories import exact, zero_gradient
from ..table.nodes import Row, record
from ..table.operation import operation


def _whole(function: Any) -> Any:
    def forward(x: Array) -> Any:
        return x.copy() if x.dtype.kind in "biu" else function(x)

    return forward


floor = exact(
    "floor", _whole(np.floor), None, doc="The largest whole number that is not above it.", method=True, in_place=True
)
ceil = exact(
    "ceil", _whole(np.ceil), None, doc="The smallest whole number that is not below it.", method=True, in_place=True
)
trunc = exact(
    "trunc",
    _whole(np.trunc),
    None,
    doc="It without what comes after the point.",
    method=True,
    in_place=True,
    synonyms=("fix",),
)
frac = exact(
    "frac",
    lambda x: x - np.trunc(x),
    lambda xp, g: g,
    doc="What comes after the point, with its sign.",
    method=True,
    in_place=True,
)

_ROUND = Row("round", zero_gradient)


@operation(method=True, in_place="overwrite", synonyms=("special.round",))
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest number with that many decimals (tens, hundreds for negative ones); halves go to the even one."""
    x = input._array
    if x.dtype.kind == "c":
        raise TypeError("complex numbers are not rounded; round .real and .imag")
    result = Tensor(x.copy() if x.dtype.kind in "biu" and decimals >= 0 else np.round(x, decimals))
    if input._requires_grad and is_grad_enabled():
        record(_ROUND, result, (input,), ())
    return result
