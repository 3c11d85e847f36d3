"""Vector norms of all elements or over some dimensions, and distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..tensor import Tensor
from ..types import Array, Dims
from . import elementwise
from .casting import to
from .dims import all_dims, kept_shape
from .operation import delivered, operation
from .reductions import needs_inexact
from .table import Row, keep, keep_result, record, records

__all__ = [
    "dist",
    "norm",
]
METHODS = __all__


def _norm_rule(xp: Any, g: Any, a: Any, out: Any, p: float, dims: Any, kept: Any) -> Any:
    g, out = xp.reshape(g, kept), xp.reshape(out, kept)
    if p == 0:
        return xp.zeros_like(a)
    if p == 1:
        return xp.sign(a) * g
    if p == 2:
        return a * xp.where(out == 0, 0.0, g / xp.where(out == 0, 1.0, out))
    size = xp.abs(a)
    if math.isinf(p):
        chosen = xp.cast((size == out) | ((size != size) & (out != out)), out.dtype)
        return xp.sign(a) * (g * chosen / xp.sum_dims(chosen, dims, True))
    safe = xp.where(size == 0, 1.0, size)
    scale = xp.where(out == 0, 0.0, g * xp.where(out == 0, 1.0, out) ** (1 - p))
    return xp.where(size == 0, 0.0, xp.sign(a) * safe ** (p - 1)) * scale


_NORM = Row("norm", _norm_rule)


@operation
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
) -> Tensor:
    """The vector norm over ``dim`` (all dimensions if ``None``): the root of order ``p`` of the sum of the powers.

    Args:
        p: a number; ``inf`` and ``-inf`` give the largest and smallest absolute value, 0 the number of elements that
            are not zero. ``"fro"`` is 2.

    Raises:
        TypeError: integers or booleans.
        ValueError: another name for ``p``.
    """
    if isinstance(p, str) and p != "fro":
        raise ValueError(f'norm() takes a number or "fro" for p, and you gave {p!r}')
    order = 2.0 if p is None or isinstance(p, str) else float(p)
    if dtype is not None:
        input = to(input, dtype)
    x = needs_inexact("norm", input)
    dims = all_dims(dim, x.ndim)
    result = Tensor(_norm(x, order, dims, keepdim))
    if records(input):
        saved = (keep(input), keep_result(result))
        record(_NORM, result, (input,), saved, order, dims, kept_shape(x.shape, dims))
    return delivered("norm", result, out)


def _norm(x: Array, p: float, dims: Any, keepdim: bool) -> Array:
    size = np.abs(x)
    kind = size.dtype
    if size.itemsize == 2:
        size = size.astype(np.float32)
    if math.isinf(p):
        if not size.size and p < 0:
            raise ValueError(f"norm(p=-inf) of no elements: the tensor has shape {x.shape}")
        if p < 0:
            result = np.minimum.reduce(size, dims, keepdims=keepdim)
        else:
            result = np.maximum.reduce(size, dims, keepdims=keepdim, initial=0)
    elif p == 0:
        result = np.add.reduce(size != 0, dims, keepdims=keepdim)
    elif p == 1:
        result = np.add.reduce(size, dims, keepdims=keepdim)
    elif p == 2:
        result = np.sqrt(np.add.reduce(size * size, dims, keepdims=keepdim))
    else:
        result = np.add.reduce(size**p, dims, keepdims=keepdim) ** (1 / p)
    return np.asarray(result).astype(kind, copy=False)


@operation
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order ``p`` of ``input - other``, broadcast."""
    return norm(elementwise.sub(input, other), p)
