"""``TENSORS``: the functions of ``ARRAYS`` on tensors, for passes that are themselves recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import complex_type
from ...tensors import Tensor
from ...types import DType
from ..create.filled_tensors import zeros_like
from ..elementwise import arithmetic, comparison, complex_numbers, exponential, operators, rounding, trigonometric
from ..elementwise.conversion import to
from ..index import elements, indexing, masking
from ..index.array_elements import LinearIndex, gather_index
from ..linalg import matrix_products
from ..reduce import reductions
from ..shape import joining, repeating, reshaping, transposing
from ..special import error_and_gamma
from .array_functions import is_basic, stretched_dims
from .rows import TENSORS


def _fit(grad: Tensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    if grad.shape != shape:
        dims = stretched_dims(grad.shape, shape)
        grad = reshaping.reshape(reductions.sum(grad, dims) if dims else grad, shape)
    return to(grad, dtype)


def _get(a: Tensor, index: Any) -> Tensor:
    return indexing.part(a, index) if is_basic(index) else elements.GET(a, index)


def _scatter(shape: tuple[int, ...], index: Any, grad: Tensor) -> Tensor:
    return (elements.PART if is_basic(index) else elements.GET).transposed(grad, shape, index)


def _put_along(shape: tuple[int, ...], dim: int, index: Any, grad: Tensor) -> Tensor:
    return elements.GET.transposed(grad, shape, gather_index(index, shape, dim) if index.ndim else LinearIndex(index))


def _sum_dims(a: Tensor, dims: Any, keepdim: bool) -> Tensor:
    # sum() takes () for all dimensions; here it means none.
    return a if dims == () else reductions.sum(a, dims, keepdim)


def _cast(a: Any, dtype: DType) -> Any:
    return to(a, dtype) if isinstance(a, Tensor) else np.asarray(a).astype(dtype)


TENSORS.__dict__.update(
    {
        "abs": operators.abs,
        "stack": joining.stack,
        "adjoint": transposing.adjoint,
        "add_rows": lambda shape, rows, grad: elements.GET.transposed(grad, shape, (rows,)),
        "broadcast_to": repeating.broadcast_to,
        "cast": _cast,
        "chosen": lambda mask, x: masking.where(mask, x, 0),
        "column_sums": lambda a: _sum_dims(a, tuple(range(a.ndim - 1)), False),
        "concatenate": joining.cat,
        "conj": complex_numbers.conj,
        "cos": trigonometric.cos,
        "cosh": trigonometric.cosh,
        "digamma": error_and_gamma.digamma,
        "erf": error_and_gamma.erf,
        "exp": exponential.exp,
        "fit": _fit,
        "floor": rounding.floor,
        "get": _get,
        "imag": complex_numbers.imag,
        "isnan": comparison.isnan,
        "log": exponential.log,
        "masked": elements.CLEAR,
        "matmul": matrix_products.matmul,
        "minimum": lambda x, other: masking.where(x < other, x, other),
        "pairs": complex_numbers.view_as_real,
        "polygamma": error_and_gamma.polygamma,
        "put_along": _put_along,
        "real": complex_numbers.real,
        "reshape": reshaping.reshape,
        "scatter": _scatter,
        "sigmoid": exponential.sigmoid,
        "sign": arithmetic.sgn,
        "sin": trigonometric.sin,
        "sqrt": exponential.sqrt,
        "sinh": trigonometric.sinh,
        "sum_dims": _sum_dims,
        "tanh": trigonometric.tanh,
        "to_complex": lambda a: to(a, complex_type(a.dtype)),
        "transpose": transposing.permute,
        "trunc": rounding.trunc,
        "where": masking.where,
        "zeros_like": zeros_like,
    }
)
