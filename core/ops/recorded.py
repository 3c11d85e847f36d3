"""``TENSORS``: the functions of ``ARRAYS`` on tensors, for passes that are themselves recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import complex_type
from ..filled_tensors import zeros_like
from ..tensor import Tensor
from ..types import DType
from . import (
    arithmetic,
    axes,
    complex_parts,
    elementwise,
    expanding,
    indexing,
    joining,
    masking,
    matrix_products,
    places,
    reductions,
    rounding,
    shaping,
    special,
    trigonometry,
)
from .array_places import Flat, along
from .casting import to
from .convolution import convolved, convolved_input, convolved_weight
from .namespaces import is_basic, stretched_dims
from .table import TENSORS


def _fit(grad: Tensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    if grad.shape != shape:
        dims = stretched_dims(grad.shape, shape)
        grad = shaping.reshape(reductions.sum(grad, dims) if dims else grad, shape)
    return to(grad, dtype)


def _get(a: Tensor, index: Any) -> Tensor:
    return indexing.part(a, index) if is_basic(index) else places.GET(a, index)


def _scatter(shape: tuple[int, ...], index: Any, grad: Tensor) -> Tensor:
    return (places.PART if is_basic(index) else places.GET).transposed(grad, shape, index)


def _put_along(shape: tuple[int, ...], dim: int, index: Any, grad: Tensor) -> Tensor:
    return places.GET.transposed(grad, shape, along(index, shape, dim) if index.ndim else Flat(index))


def _sum_dims(a: Tensor, dims: Any, keepdim: bool) -> Tensor:
    # No dimensions to sum over is not the same as all of them.
    return a if dims == () else reductions.sum(a, dims, keepdim)


def _cast(a: Any, dtype: DType) -> Any:
    return to(a, dtype) if isinstance(a, Tensor) else np.asarray(a).astype(dtype)


TENSORS.__dict__.update(
    {
        "abs": elementwise.abs,
        "stack": joining.stack,
        "adjoint": axes.adjoint,
        "add_rows": lambda shape, rows, grad: places.GET.transposed(grad, shape, (rows,)),
        "broadcast_to": expanding.broadcast_to,
        "cast": _cast,
        "chosen": lambda mask, x: masking.where(mask, x, 0),
        "concatenate": joining.cat,
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
        "get": _get,
        "imag": complex_parts.imag,
        "isnan": elementwise.isnan,
        "log": elementwise.log,
        "masked": places.CLEAR,
        "matmul": matrix_products.matmul,
        "minimum": elementwise.minimum,
        "pairs": complex_parts.view_as_real,
        "polygamma": special.polygamma,
        "put_along": _put_along,
        "real": complex_parts.real,
        "reshape": shaping.reshape,
        "scatter": _scatter,
        "sigmoid": elementwise.sigmoid,
        "sign": arithmetic.sgn,
        "sin": elementwise.sin,
        "sqrt": elementwise.sqrt,
        "sinh": trigonometry.sinh,
        "sum_dims": _sum_dims,
        "tanh": elementwise.tanh,
        "to_complex": lambda a: to(a, complex_type(a.dtype)),
        "transpose": axes.permute,
        "trunc": rounding.trunc,
        "where": masking.where,
        "zeros_like": zeros_like,
    }
)
