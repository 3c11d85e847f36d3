"""Variances, standard deviations, covariances and correlations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...array_like import as_array
from ...dtypes import wide
from ...tensors import Tensor
from ...types import Array, Dims
from ..create.from_data import as_tensor
from ..elementwise import exponential, operators
from ..elementwise.complex_numbers import conj, real
from ..elementwise.rounding import clamp
from ..index import indexing
from ..linalg import matrix_products
from ..shape import reshaping, transposing
from ..table.array_functions import add_reduce
from ..table.dims import all_dims, kept_shape
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import Row
from . import reductions
from .reductions import needs_inexact


def _var_rule(xp: Any, g: Any, a: Any, dims: Any, kept: Any, count: float, divisor: float) -> Any:
    centred = a - xp.sum_dims(a, dims, True) / count
    if not divisor:  # as in PyTorch: infinite, and nan for elements equal to the mean
        return xp.cast(xp.reshape(g, kept) * xp.abs(centred) * math.inf, a.dtype)
    return xp.reshape(g, kept) * centred * (2 / divisor)


def _std_rule(xp: Any, g: Any, a: Any, out: Any, *params: Any) -> Any:
    # At 0 the derivative is infinite; as in PyTorch it is 0.
    return _var_rule(xp, xp.where(out == 0, 0.0, g / (2 * xp.where(out == 0, 1.0, out))), a, *params)


_VAR = Row("var", _var_rule)
_STD = Row("std", _std_rule)


@operation(method=True)
def var(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the variance over ``dim``: ``sum(abs(input - mean)**2) / max(0, N - correction)`` for N elements.

    Args:
        input: any shape, floating-point or complex.
        dim: the dimensions to reduce; all if ``None``. A boolean stands for ``unbiased``.
        unbiased: whether ``correction`` is 1 (the default) or 0.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        correction: subtracted from the number of elements; overrides ``unbiased``.
        out: where the result is written.

    Raises:
        TypeError: ``input`` holds integers or booleans.
    """
    return _deviation("var", input, dim, unbiased, keepdim, correction, root=False)


@operation(method=True)
def std(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the standard deviation over ``dim``, the square root of ``var``; its gradient at 0 is 0.

    Args:
        input: any shape, floating-point or complex.
        dim: the dimensions to reduce; all if ``None``. A boolean stands for ``unbiased``.
        unbiased: whether ``correction`` is 1 (the default) or 0.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        correction: subtracted from the number of elements; overrides ``unbiased``.
        out: where the result is written.

    Raises:
        TypeError: ``input`` holds integers or booleans.
    """
    return _deviation("std", input, dim, unbiased, keepdim, correction, root=True)


@operation(method=True)
def var_mean(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean over ``dim``; see ``var``.

    Args:
        input: any shape, floating-point or complex.
        dim: the dimensions to reduce; all if ``None``.
        unbiased: whether ``correction`` is 1 (the default) or 0.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        correction: subtracted from the number of elements; overrides ``unbiased``.

    Raises:
        TypeError: ``input`` holds integers or booleans.
    """
    over = None if isinstance(dim, bool) else dim
    return var(input, dim, unbiased, keepdim, correction=correction), reductions.mean(input, over, keepdim)


@operation(method=True)
def std_mean(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean over ``dim``; see ``std``.

    Args:
        input: any shape, floating-point or complex.
        dim: the dimensions to reduce; all if ``None``.
        unbiased: whether ``correction`` is 1 (the default) or 0.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        correction: subtracted from the number of elements; overrides ``unbiased``.

    Raises:
        TypeError: ``input`` holds integers or booleans.
    """
    over = None if isinstance(dim, bool) else dim
    return std(input, dim, unbiased, keepdim, correction=correction), reductions.mean(input, over, keepdim)


def _deviation(
    name: str, input: Tensor, dim: Any, unbiased: bool | None, keepdim: bool, correction: float | None, *, root: bool
) -> Tensor:
    x = needs_inexact(name, input)
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 0 if unbiased is False else 1
    dims = all_dims(dim, x.ndim)
    count = math.prod(x.shape[axis] for axis in dims)
    divisor = max(count - correction, 0)
    result = Tensor(_squares(x, dims, keepdim, count, divisor, root))
    if records(input):
        params = (dims, kept_shape(x.shape, dims), count, divisor)
        if root:
            record(_STD, result, (input,), (keep(input), keep_result(result)), *params)
        else:
            record(_VAR, result, (input,), (keep(input),), *params)
    return result


def _squares(given: Array, dims: Any, keepdim: bool, count: int, divisor: float, root: bool) -> Array:
    x = wide(given)
    mean = np.true_divide(add_reduce(x, dims, keepdims=True), x.dtype.type(count))
    centred = x - mean
    squares = (centred * centred.conj()).real if x.dtype.kind == "c" else centred * centred
    result = as_array(np.true_divide(add_reduce(squares, dims, keepdims=keepdim), squares.dtype.type(divisor)))
    result = as_array(np.sqrt(result)) if root else result
    return result.astype(given.dtype) if x is not given else result


@operation(method=True)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Return the covariance matrix of the rows of ``input``, shape ``(variables, variables)``; 0-d for one variable.

    Args:
        input: shape ``(variables, observations)`` or ``(observations,)``.
        correction: subtracted from the number of observations.
        fweights: how often each observation occurs, integers of shape ``(observations,)``.
        aweights: the weight of each observation, shape ``(observations,)``.

    Raises:
        TypeError: ``fweights`` are not integers, or ``aweights`` not floating-point.
        ValueError: ``input`` has more than two dimensions, or there are not as many weights as observations, or negative
            ones.
    """
    if input._array.ndim > 2:
        raise ValueError(f"cov() takes at most two dimensions, and you gave shape {input.shape}")
    rows = reshaping.reshape(input, (1, -1)) if input._array.ndim < 2 else input
    _check_weights("fweights", fweights, rows.shape[1], "biu")
    _check_weights("aweights", aweights, rows.shape[1], "fV")
    weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        total: Any = rows.shape[1]
        centred = rows - reductions.sum(rows, 1, True) / total
        scaled, divisor = centred, total - correction
    else:
        total = reductions.sum(weights)
        centred = rows - reductions.sum(rows * weights, 1, True) / total
        scaled = centred * weights
        part = total if aweights is None else reductions.sum(weights * aweights) / total
        divisor = total - correction * (1 if aweights is None else part)
    divisor = as_tensor(divisor) if isinstance(divisor, Tensor) else as_tensor(float(divisor), rows.dtype)
    product = matrix_products.matmul(scaled, conj(transposing.t(centred)))
    result = operators.div(product, clamp(divisor, min=0))
    return reshaping.reshape(result, ()) if rows.shape[0] == 1 else result


def _check_weights(name: str, weights: Tensor | None, count: int, kinds: str) -> None:
    if weights is None:
        return
    if weights.dtype.kind not in kinds:
        raise TypeError(
            f"cov(): {name} must be {'floating-point' if 'f' in kinds else 'integers'}, not {weights.dtype}"
        )
    if weights.shape != (count,):
        raise ValueError(f"cov(): {name} must have shape ({count},), one for each observation, not {weights.shape}")
    if (weights._array < 0).any():
        raise ValueError(f"cov(): {name} must not be negative")


@operation(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Return the correlation coefficients of the rows of ``input`` (variables, observations), shape ``(variables, variables)``.

    Raises:
        ValueError: ``input`` has more than two dimensions.
    """
    covariances = cov(input)
    if not covariances._array.ndim:
        return operators.div(covariances, covariances)
    diagonal = np.arange(covariances.shape[0])
    scale = exponential.sqrt(real(indexing.getitem(covariances, (diagonal, diagonal))))
    ratio = covariances / reshaping.reshape(scale, (-1, 1)) / scale
    return ratio if ratio.dtype.kind == "c" else clamp(ratio, -1, 1)
