"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled
from ..autograd.graph import gradient_edge
from ..dtypes import result_type
from ..tensor import Tensor
from ..types import Array
from .operation import operation
from .table import OpNode, Row, Saved

__all__ = [
    "addmm",
    "bmm",
    "dot",
    "linear",
    "matmul",
    "mm",
    "mv",
    "outer",
]
# What of these are methods of tensors too.
METHODS = (
    "addmm",
    "bmm",
    "dot",
    "matmul",
    "mm",
    "mv",
    "outer",
)


def _rule_a(xp: Any, g: Any, a: Any, b: Any, shape: Any, other: Any) -> Any:
    if len(shape) == 1 and len(other) == 1:
        return g * b
    if len(other) == 1:
        return xp.fit(xp.reshape(g, (*g.shape, 1)) * b, shape, g.dtype)
    if len(shape) == 1:
        g = xp.reshape(g, (*g.shape[:-1], 1, g.shape[-1]))
        return xp.fit(xp.matmul(g, b.mT), (1, *shape), g.dtype).reshape(shape)
    return xp.fit(xp.matmul(g, b.mT), shape, g.dtype)


def _rule_b(xp: Any, g: Any, a: Any, b: Any, other: Any, shape: Any) -> Any:
    if len(shape) == 1 and len(other) == 1:
        return g * a
    if len(other) == 1:
        g = xp.reshape(g, (*g.shape[:-1], 1, g.shape[-1]))
        return xp.fit(xp.matmul(xp.reshape(a, (-1, 1)), g), shape, g.dtype)
    if len(shape) == 1:
        g = xp.reshape(g, (*g.shape, 1))
        return xp.fit(xp.matmul(a.mT, g), (*shape, 1), g.dtype).reshape(shape)
    return xp.fit(xp.matmul(a.mT, g), shape, g.dtype)


_MATMUL = Row("matmul", _rule_a, _rule_b)
_MM = Row("mm", lambda xp, g, a, b: xp.matmul(g, b.mT), lambda xp, g, a, b: xp.matmul(a.mT, g))
_LINEAR = Row(
    "linear",
    lambda xp, g, x, w: xp.matmul(g, w),
    lambda xp, g, x, w: xp.matmul(xp.reshape(g, (-1, g.shape[-1])).mT, xp.reshape(x, (-1, x.shape[-1]))),
    lambda xp, g, x, w: xp.sum_dims(g, tuple(range(g.ndim - 1)), False),
)


@operation
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product ``a @ b``, with NumPy's rules for vectors and for broadcasting leading dimensions.

    Raises:
        ValueError: the shapes do not fit.
    """
    x, y = _same_dtype("matmul", a, b)
    try:
        result = Tensor(_product(x, y))
    except ValueError:
        raise _misfit("matmul", x, y) from None
    if (a._requires_grad or b._requires_grad) and is_grad_enabled():
        if x.ndim == 2 and y.ndim == 2:
            _link(_MM, result, (a, b), (x, y), ())
        else:
            _link(_MATMUL, result, (a, b), (x, y), (x.shape, y.shape))
    return result


@operation
def mm(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices.

    Raises:
        ValueError: an operand is not 2-d, or the shapes do not fit.
    """
    return _with_ndim("mm", 2, a, b)


@operation
def bmm(a: Tensor, b: Tensor) -> Tensor:
    """The products of two batches of matrices, ``(n, i, k)`` and ``(n, k, j)``.

    Raises:
        ValueError: an operand is not 3-d, or the shapes do not fit.
    """
    if a.ndim == 3 and b.ndim == 3 and a.shape[0] != b.shape[0]:
        raise _misfit("bmm", a._array, b._array)
    return _with_ndim("bmm", 3, a, b)


@operation
def mv(a: Tensor, b: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    if a.ndim != 2 or b.ndim != 1:
        raise ValueError(f"mv() takes a matrix and a vector, and you gave shapes {a.shape} and {b.shape}")
    return matmul(a, b)


@operation
def dot(a: Tensor, b: Tensor) -> Tensor:
    """The inner product of two vectors."""
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"dot() takes two vectors, and you gave shapes {a.shape} and {b.shape}")
    return matmul(a, b)


@operation
def outer(a: Tensor, b: Tensor) -> Tensor:
    """The matrix of the products of each element of one vector with each of another."""
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer() takes two vectors, and you gave shapes {a.shape} and {b.shape}")
    return a.reshape(-1, 1) * b


@operation
def addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * bias + alpha * (a @ b)`` of matrices."""
    product = mm(a, b)
    return (bias if beta == 1 else bias * beta) + (product if alpha == 1 else product * alpha)


@operation
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: shapes ``(..., in)``, ``(out, in)`` and ``(out,)`` give ``(..., out)``.

    Raises:
        ValueError: the shapes do not fit.
    """
    x, w = _same_dtype("linear", input, weight)
    if w.ndim != 2 or not x.ndim or x.shape[-1] != w.shape[1]:
        raise ValueError(f"linear() cannot apply a weight of shape {w.shape} (out, in) to an input of shape {x.shape}")
    out = _product(x, w.T)
    if bias is not None:
        if bias._array.shape != w.shape[:1] or bias._array.dtype != out.dtype:
            raise ValueError(
                f"linear() needs a bias of shape {w.shape[:1]} and {out.dtype}, not {bias.shape}, {bias.dtype}"
            )
        out = np.asarray(out)
        out += bias._array
    result = Tensor(out)
    if is_grad_enabled() and (
        input._requires_grad or weight._requires_grad or (bias is not None and bias._requires_grad)
    ):
        bias_edge = None if bias is None else gradient_edge(bias)
        _link(_LINEAR, result, (input, weight), (x, w), (), (bias_edge,))
    return result


def _product(x: Array, y: Array) -> Any:
    # NumPy multiplies matrices of bfloat16 in float32.
    return np.matmul(x, y) if x.dtype.kind != "V" else np.matmul(x, y).astype(x.dtype)


def _link(
    row: Row, result: Tensor, inputs: tuple[Tensor, Tensor], arrays: tuple[Array, Array], params: Any, more: Any = ()
) -> None:
    a, b = inputs
    edges = (gradient_edge(a), gradient_edge(b), *more)
    # Each factor is kept only if the other one wants a gradient.
    saved_a: Saved = (arrays[0], a, a._counter, a._counter[0]) if b._requires_grad else None
    saved_b: Saved = (arrays[1], b, b._counter, b._counter[0]) if a._requires_grad else None
    used = row if result._array.dtype.kind == "f" else row.of(result._array.dtype)
    result._edge = (OpNode(used, edges, (saved_a, saved_b), params), 0)
    result._requires_grad = True


def _with_ndim(name: str, ndim: int, a: Tensor, b: Tensor) -> Tensor:
    if a.ndim != ndim or b.ndim != ndim:
        raise ValueError(f"{name}() takes two {ndim}-d tensors, and you gave shapes {a.shape} and {b.shape}")
    return matmul(a, b)


def _same_dtype(name: str, a: Tensor, b: Tensor) -> tuple[Array, Array]:
    try:
        x, y = a._array, b._array
    except AttributeError:
        raise TypeError(f"{name}() takes tensors, not {type(a).__name__} and {type(b).__name__}") from None
    if x.dtype is not y.dtype and x.dtype != y.dtype:
        raise TypeError(
            f"{name}() needs operands of one dtype, and you gave {x.dtype} and {y.dtype}; "
            f"convert one, as in x.to({result_type(x, y)!r})"
        )
    return x, y


def _misfit(name: str, x: Array, y: Array) -> ValueError:
    return ValueError(f"{name}() cannot multiply shapes {x.shape} and {y.shape}; the inner lengths must be equal")
