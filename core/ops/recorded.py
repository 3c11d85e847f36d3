"""``TENSORS``: the functions of ``ARRAYS`` on tensors, for passes that are themselves recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..creation import zeros_like
from ..dtypes import complex_type
from ..tensor import Tensor
from ..types import DType
from . import (
    arithmetic,
    complex_parts,
    elementwise,
    indexing,
    linalg,
    namespaces,
    reductions,
    rounding,
    shaping,
    special,
    trigonometry,
)
from .casting import to
from .convolution import convolved, convolved_input, convolved_weight, gathered_windows, spread_windows
from .interpolation import resampled
from .joining import cat
from .pooling import pick_windows, placed_back, shared_windows, summed_windows
from .table import TENSORS, Row, record, records

_SCATTER = Row("scatter", lambda xp, g, index: xp.get(g, index))
_PUT = Row("put_along", lambda xp, g, index: xp.get(g, index))
_ADD_ROWS = Row("add_rows", lambda xp, g, rows: xp.get(g, rows))


def _fit(grad: Tensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    if grad.shape != shape:
        extra = grad.ndim - len(shape)
        dims = tuple(range(extra)) + tuple(
            axis + extra for axis, length in enumerate(shape) if length == 1 and grad.shape[axis + extra] != 1
        )
        grad = shaping.reshape(reductions.sum(grad, dims) if dims else grad, shape)
    return to(grad, dtype)


def _masked(grad: Tensor, index: Any) -> Tensor:
    mask = np.ones(grad.shape, grad.dtype)
    mask[index] = 0
    return grad * Tensor(mask)


def _scatter(shape: tuple[int, ...], index: Any, grad: Tensor) -> Tensor:
    result = Tensor(namespaces.scatter(shape, index, grad._array))
    return record(_SCATTER, result, (grad,), (), index) if records(grad) else result


def _add_rows(shape: tuple[int, ...], rows: Any, grad: Tensor) -> Tensor:
    result = Tensor(namespaces.add_rows(shape, rows, grad._array))
    return record(_ADD_ROWS, result, (grad,), (), rows) if records(grad) else result


def _put_along(shape: tuple[int, ...], dim: int, index: Any, grad: Tensor) -> Tensor:
    result = Tensor(namespaces.put_along(shape, dim, index, grad._array))
    where = indexing.along(index, dim) if index.ndim else ()
    return record(_PUT, result, (grad,), (), where) if records(grad) else result


def _sum_dims(a: Tensor, dims: Any, keepdim: bool) -> Tensor:
    # No dimensions to sum over is not the same as all of them.
    return a if dims == () else reductions.sum(a, dims, keepdim)


def _cast(a: Any, dtype: DType) -> Any:
    return to(a, dtype) if isinstance(a, Tensor) else np.asarray(a).astype(dtype)


TENSORS.__dict__.update(
    {
        "abs": elementwise.abs,
        "add_rows": _add_rows,
        "broadcast_to": shaping.broadcast_to,
        "cast": _cast,
        "concatenate": cat,
        "conj": complex_parts.conj,
        "convolve": convolved,
        "convolve_input": convolved_input,
        "convolve_weight": convolved_weight,
        "cos": elementwise.cos,
        "cosh": trigonometry.cosh,
        "digamma": special.digamma,
        "exp": elementwise.exp,
        "fit": _fit,
        "floor": rounding.floor,
        "gather_windows": gathered_windows,
        "get": indexing.getitem,
        "imag": complex_parts.imag,
        "isnan": elementwise.isnan,
        "log": elementwise.log,
        "masked": _masked,
        "matmul": linalg.matmul,
        "minimum": elementwise.minimum,
        "pairs": complex_parts.view_as_real,
        "pick_windows": pick_windows,
        "place_back": placed_back,
        "polygamma": special.polygamma,
        "put_along": _put_along,
        "resample": resampled,
        "real": complex_parts.real,
        "reshape": shaping.reshape,
        "scatter": _scatter,
        "share_windows": shared_windows,
        "sigmoid": elementwise.sigmoid,
        "sign": arithmetic.sgn,
        "sin": elementwise.sin,
        "sqrt": elementwise.sqrt,
        "sinh": trigonometry.sinh,
        "spread": spread_windows,
        "sum_dims": _sum_dims,
        "sum_windows": summed_windows,
        "tanh": elementwise.tanh,
        "to_complex": lambda a: to(a, complex_type(a.dtype)),
        "transpose": shaping.permute,
        "trunc": rounding.trunc,
        "where": indexing.where,
        "zeros_like": zeros_like,
    }
)
