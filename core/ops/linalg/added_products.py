"""Products added to a tensor, ``beta * input + alpha * product``: ``addmm``, ``addbmm``, ``baddbmm``, ``addmv``, ``addr``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import result_type
from ...tensors import Tensor
from ...types import Scalar
from ..table.array_functions import matmul as product
from ..table.nodes import keep, record, records
from ..table.operation import operation
from ..table.rows import Row
from .matrix_products import factors, mv, outer


def _times(xp: Any, g: Any, factor: Any) -> Any:
    return g if factor == 1 else xp.cast(g * factor.conjugate(), g.dtype)  # NumPy widens bfloat16 beside a number


_ADDMM = Row(
    "addmm",
    lambda xp, g, a, b, shape, beta, alpha: xp.fit(_times(xp, g, beta), shape, g.dtype),
    lambda xp, g, a, b, shape, beta, alpha: xp.matmul(_times(xp, g, alpha), xp.adjoint(b)),
    lambda xp, g, a, b, shape, beta, alpha: xp.matmul(xp.adjoint(a), _times(xp, g, alpha)),
    holomorphic=False,
)


@operation(method=True, in_place="overwrite")
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)``, of shape ``(n, m)``.

    Args:
        input: tensor that the product is added to, broadcast to its shape.
        mat1: shape ``(n, k)``.
        mat2: shape ``(k, m)``.
        beta: factor of ``input``; 0 ignores it, nan too.
        alpha: factor of the product.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are bool.
        ValueError: the shapes do not fit.
    """
    return _added("addmm", 2, input, mat1, mat2, beta, alpha)


@operation(method=True, in_place="overwrite")
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * input + alpha * (batch1 @ batch2)``, of shape ``(b, n, m)``. Errors: those of ``addmm``.

    Args:
        input: tensor that the product is added to, broadcast to its shape.
        batch1: shape ``(b, n, k)``.
        batch2: shape ``(b, k, m)``.
        beta: factor of ``input``; 0 ignores it, nan too.
        alpha: factor of the product.
        out: where the result is written.
    """
    return _added("baddbmm", 3, input, batch1, batch2, beta, alpha)


@operation(method=True, in_place="overwrite")
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * input + alpha * (batch1 @ batch2).sum(0)``, of shape ``(n, m)``. Errors: those of ``addmm``.

    Args:
        input: tensor that the product is added to, broadcast to its shape.
        batch1: shape ``(b, n, k)``.
        batch2: shape ``(b, k, m)``.
        beta: factor of ``input``; 0 ignores it, nan too.
        alpha: factor of the product.
        out: where the result is written.
    """
    _check("addbmm", 3, batch1, batch2)
    n, rows, inner = batch1.shape
    # The sum over the batch is one longer product.
    left = batch1.transpose(0, 1).reshape(rows, n * inner)
    return _added("addbmm", 2, input, left, batch2.reshape(n * inner, batch2.shape[2]), beta, alpha)


@operation(method=True, in_place="overwrite")
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * input + alpha * (mat @ vec)``, of shape ``(n,)``. Errors: those of ``addmm``.

    Args:
        input: tensor that the product is added to, broadcast to its shape.
        mat: shape ``(n, k)``.
        vec: shape ``(k,)``.
        beta: factor of ``input``; 0 ignores it, nan too.
        alpha: factor of the product.
        out: where the result is written.
    """
    return _sum("addmv", input, mv(mat, vec), beta, alpha)


@operation(method=True, in_place="overwrite")
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * input + alpha * outer(vec1, vec2)``, of shape ``(n, m)``. Errors: those of ``outer``.

    Args:
        input: tensor that the product is added to, broadcast to its shape.
        vec1: shape ``(n,)``.
        vec2: shape ``(m,)``.
        beta: factor of ``input``; 0 ignores it, nan too.
        alpha: factor of the product.
        out: where the result is written.
    """
    return _sum("addr", input, outer(vec1, vec2), beta, alpha)


def _sum(name: str, input: Tensor, value: Tensor, beta: Any, alpha: Any) -> Tensor:
    dtype = result_type(input, value)
    value = value if alpha == 1 else value * dtype.type(alpha).item()  # integers stay integers
    result = value if not beta else value + (input if beta == 1 else input * dtype.type(beta).item())
    _check_shape(name, input, value.shape)
    return result


def _added(name: str, ndim: int, input: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any) -> Tensor:
    _check(name, ndim, a, b)
    x, y = factors(name, a, b)
    factors(name, input, a)
    value = product(x, y)
    _check_shape(name, input, value.shape)
    if alpha != 1:
        value *= x.dtype.type(alpha)
    if beta:
        value += input._array if beta == 1 else input._array * x.dtype.type(beta)
    result = Tensor(value)
    if records(input, a, b):
        record(_ADDMM, result, (input, a, b), (keep(a), keep(b)), input.shape, beta, alpha)
    return result


def _check(name: str, ndim: int, a: Tensor, b: Tensor) -> None:
    if a.ndim != ndim or b.ndim != ndim or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise ValueError(
            f"{name}() multiplies {ndim}-d tensors with equal inner lengths, and you gave shapes {a.shape} and {b.shape}"
        )


def _check_shape(name: str, input: Tensor, shape: tuple[int, ...]) -> None:
    if input.shape in (shape, shape[-1:], ()):
        return
    try:
        fits = np.broadcast_shapes(input.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name}() cannot add an input of shape {input.shape} to a product of shape {shape}")
