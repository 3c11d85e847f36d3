"""Matrix products: ``matmul`` in all ranks, and its special cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...array_like import as_array
from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import result_type
from ...tensors import Tensor
from ...types import Array
from ..elementwise.complex_numbers import conj
from ..shape.reshaping import reshape
from ..table.array_functions import matmul as product
from ..table.nodes import OpNode, Saved
from ..table.operation import operation
from ..table.rows import Row

_FEW_ROWS, _MANY_OUTPUTS, _PRODUCTS = 128, 128, 1 << 17  # of _projected(): beyond these the usual order is as fast


def _rule_a(xp: Any, g: Any, a: Any, b: Any, shape: Any, other: Any) -> Any:
    if len(other) == 1:
        return xp.fit(xp.reshape(g, (*g.shape, 1)) * xp.conj(b), shape, g.dtype)
    b = xp.adjoint(b)
    if len(shape) == 1:
        g = xp.reshape(g, (*g.shape[:-1], 1, g.shape[-1]))
        return xp.reshape(xp.fit(xp.matmul(g, b), (1, *shape), g.dtype), shape)
    return xp.fit(xp.matmul(g, b), shape, g.dtype)


def _rule_b(xp: Any, g: Any, a: Any, b: Any, other: Any, shape: Any) -> Any:
    if len(other) == 1:
        g = xp.reshape(g, (*g.shape[:-1], 1, g.shape[-1]))
        return xp.fit(xp.reshape(xp.conj(a), (-1, 1)) * g, shape, g.dtype)
    a = xp.adjoint(a)
    if len(shape) == 1:
        g = xp.reshape(g, (*g.shape, 1))
        return xp.reshape(xp.fit(xp.matmul(a, g), (*shape, 1), g.dtype), shape)
    return xp.fit(xp.matmul(a, g), shape, g.dtype)


def _folded_rule_b(xp: Any, g: Any, a: Any, b: Any) -> Any:
    # One product over all batches at once, instead of one for each and their sum.
    return xp.matmul(xp.adjoint(_rows(xp, a)), _rows(xp, g))


def _rows(xp: Any, a: Any) -> Any:
    # Not (-1, ...): NumPy cannot find the number of rows if there are no elements.
    return a if a.ndim == 2 else xp.reshape(a, (math.prod(a.shape[:-1]), a.shape[-1]))


_MATMUL = Row("matmul", _rule_a, _rule_b, holomorphic=False)
_DOT = Row("dot", lambda xp, g, a, b: g * xp.conj(b), lambda xp, g, a, b: g * xp.conj(a), holomorphic=False)
_MM = Row(
    "mm",
    lambda xp, g, a, b: xp.matmul(g, xp.adjoint(b)),
    lambda xp, g, a, b: xp.matmul(xp.adjoint(a), g),
    holomorphic=False,
)
_FOLDED = Row("matmul", lambda xp, g, a, b: xp.matmul(g, xp.adjoint(b)), _folded_rule_b, holomorphic=False)
_LINEAR = Row(
    "linear",
    lambda xp, g, x, w: xp.matmul(g, xp.conj(w)),
    lambda xp, g, x, w: xp.matmul(_rows(xp, g).mT, xp.conj(_rows(xp, x))),
    lambda xp, g, x, w: xp.column_sums(g),
    holomorphic=False,
)


@operation(method=True, synonyms=("linalg.matmul",), operator="matmul")
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the matrix product ``input @ other``; leading dimensions are broadcast.

    Args:
        input: ``(..., n, k)``, or a vector ``(k,)``, a row that the result lacks.
        other: ``(..., k, m)``, or a vector ``(k,)``, a column that the result lacks; of the same dtype.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are bool.
        ValueError: the shapes do not fit.
    """
    return _multiplied(input, other, *factors("matmul", input, other))


def _multiplied(a: Tensor, b: Tensor, x: Array, y: Array) -> Tensor:
    try:
        result = Tensor(product(x, y))
    except ValueError:
        raise misfit("matmul", x, y) from None
    if (a._requires_grad or b._requires_grad) and is_grad_enabled():
        row, params = _row_for(x, y)
        link(row, result, (a, b), (x, y), params)
    return result


def _row_for(x: Array, y: Array) -> tuple[Row, tuple[Any, ...]]:
    if y.ndim == 2:
        if x.ndim == 2:
            return _MM, ()
        if x.ndim > 2:
            return _FOLDED, ()
    elif x.ndim == 1 and y.ndim == 1:
        return _DOT, ()
    return _MATMUL, (x.shape, y.shape)


@operation(method=True)
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the product of two matrices, of shape ``(n, m)``.

    Args:
        input: shape ``(n, k)``.
        mat2: shape ``(k, m)``, of the same dtype.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are bool.
        ValueError: an operand is not 2-d, or the shapes do not fit.
    """
    return _of_dims("mm", (2, 2), input, mat2)


@operation(method=True)
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the products of two batches of matrices, of shape ``(b, n, m)``.

    Args:
        input: shape ``(b, n, k)``.
        mat2: shape ``(b, k, m)``, of the same dtype.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are bool.
        ValueError: an operand is not 3-d, or the shapes do not fit.
    """
    if input.ndim == 3 and mat2.ndim == 3 and input.shape[0] != mat2.shape[0]:
        raise ValueError(f"bmm() needs as many matrices in both, and you gave shapes {input.shape} and {mat2.shape}")
    return _of_dims("bmm", (3, 3), input, mat2)


@operation(method=True)
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the product of a matrix and a vector, of shape ``(n,)``. Errors: those of ``mm``.

    Args:
        input: shape ``(n, m)``.
        vec: shape ``(m,)``.
        out: where the result is written.
    """
    return _of_dims("mv", (2, 1), input, vec)


@operation(method=True)
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the sum of the products of the elements of two vectors, 0-d. Errors: those of ``mm``.

    Args:
        input: a vector.
        tensor: a vector of the same length and dtype.
        out: where the result is written.
    """
    return _of_dims("dot", (1, 1), input, tensor)


@operation(method=True)
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``dot`` of the complex conjugate of ``input`` and ``other``, 0-d. Errors: those of ``mm``.

    Args:
        input: a vector.
        other: a vector of the same length and dtype.
        out: where the result is written.
    """
    return _of_dims("vdot", (1, 1), conj(input), other)


@operation(method=True)
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the sums of products over the last dimension of both: ``(*input.shape[:-1], *other.shape[:-1])``.

    Args:
        input: any shape; if one of the two is 0-d, the result is ``input * other``.
        other: any shape, with the last length and the dtype of ``input``.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are bool.
        ValueError: the last dimensions differ.
    """
    if not input.ndim or not other.ndim:
        result = input * other
    else:
        if input.shape[-1] != other.shape[-1]:
            raise ValueError(f"inner() needs last dimensions of one length, not shapes {input.shape} and {other.shape}")
        sums = matmul(_as_matrix(input), _as_matrix(other).mT)
        result = reshape(sums, (*input.shape[:-1], *other.shape[:-1]))
    return result


def _as_matrix(x: Tensor) -> Tensor:
    return reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


@operation(method=True, synonyms=("ger",))
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the products of each element of one vector with each of another, ``(n, m)``.

    Args:
        input: shape ``(n,)``.
        vec2: shape ``(m,)``.
        out: where the result is written.

    Raises:
        ValueError: an operand is not 1-d.
    """
    if input.ndim != 1 or vec2.ndim != 1:
        raise ValueError(f"outer() takes two vectors, and you gave shapes {input.shape} and {vec2.shape}")
    return reshape(input, (-1, 1)) * vec2


@operation(function=True)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``, of shape ``(..., out)``.

    Args:
        input: shape ``(..., in)``.
        weight: shape ``(out, in)``.
        bias: shape ``(out,)``, added if given.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes do not fit.
    """
    x, w = factors("linear", input, weight)
    if w.ndim != 2 or not x.ndim or x.shape[-1] != w.shape[1]:
        raise ValueError(
            f"linear() cannot apply a weight of shape {w.shape} (out, in) to an input of shape {x.shape}: "
            "its last length must be the weight's second"
        )
    out = _projected(x, w)
    if bias is not None:
        if bias._array.shape != w.shape[:1] or bias._array.dtype != out.dtype:
            raise ValueError(
                f"linear() needs a bias of shape {w.shape[:1]} and {out.dtype}, not {bias.shape}, {bias.dtype}"
            )
        out = out if type(out) is np.ndarray else as_array(out)
        out += bias._array
    result = Tensor(out)
    if is_grad_enabled() and (
        input._requires_grad or weight._requires_grad or (bias is not None and bias._requires_grad)
    ):
        bias_edge = None if bias is None else gradient_edge(bias)
        link(_LINEAR, result, (input, weight), (x, w), (), (bias_edge,))
    return result


def _projected(x: Array, w: Array) -> Any:
    """Return ``x @ w.T``; for few rows as the transpose of ``w @ x.T``, which takes BLAS half to nine tenths of the time."""
    rows, (outputs, inputs) = math.prod(x.shape[:-1]), w.shape
    few = 1 < rows <= min(_FEW_ROWS, outputs // 2) and outputs >= _MANY_OUTPUTS and rows * w.size >= _PRODUCTS
    if not few or x.dtype.kind != "f" or x.dtype.itemsize < 4:
        return product(x, w.T)
    columns = w.dot(x.reshape(rows, inputs).T)
    return np.ascontiguousarray(columns.T, like=columns).reshape(*x.shape[:-1], outputs)


def link(
    row: Row, result: Tensor, inputs: tuple[Tensor, Tensor], arrays: tuple[Array, Array], params: Any, more: Any = ()
) -> None:
    """Record a product of two factors; each is kept only if the other one requires a gradient.

    Args:
        row: gradient rules.
        result: the product.
        inputs: the factors.
        arrays: their arrays.
        params: further arguments of the rules.
        more: gradient edges of further inputs.
    """
    a, b = inputs
    edges = (gradient_edge(a), gradient_edge(b), *more)
    saved_a: Saved = (arrays[0], a, a._counter, a._counter[0]) if b._requires_grad else None
    saved_b: Saved = (arrays[1], b, b._counter, b._counter[0]) if a._requires_grad else None
    result._edge = (OpNode(row, edges, (saved_a, saved_b), params), 0)
    result._requires_grad = True


def _of_dims(name: str, dims: tuple[int, int], a: Tensor, b: Tensor) -> Tensor:
    x, y = factors(name, a, b)
    if x.ndim != dims[0] or y.ndim != dims[1] or x.shape[-1] != y.shape[-2 if dims[1] > 1 else 0]:
        what = {1: "a vector", 2: "a matrix", 3: "a batch of matrices (3-d)"}
        raise ValueError(
            f"{name}() takes {what[dims[0]]} and {what[dims[1]]} whose inner lengths are equal, "
            f"and you gave shapes {x.shape} and {y.shape}"
        )
    return _multiplied(a, b, x, y)


def factors(name: str, a: Tensor, b: Tensor) -> tuple[Array, Array]:
    """Return the arrays of two factors of one dtype.

    Args:
        name: name of the operation.
        a, b: the factors.

    Raises:
        TypeError: the dtypes differ or are bool, or a factor is not a tensor.
    """
    try:
        x, y = a._array, b._array
    except AttributeError:
        raise TypeError(f"{name}() takes tensors, not {type(a).__name__} and {type(b).__name__}") from None
    if x.dtype is not y.dtype and x.dtype != y.dtype:
        raise TypeError(
            f"{name}() needs operands of one dtype, and you gave {x.dtype} and {y.dtype}; "
            f"convert one, as in x.to({result_type(x, y).name!r})"
        )
    if x.dtype.kind == "b":
        raise TypeError(f"{name}() is not for booleans; convert them, as in x.to('float32') or x.to('int64')")
    return x, y


def misfit(name: str, x: Array, y: Array) -> ValueError:
    """Return the error of shapes that cannot be multiplied.

    Args:
        name: name of the operation.
        x, y: the factors.
    """
    return ValueError(f"{name}() cannot multiply shapes {x.shape} and {y.shape}; the inner lengths must be equal")
