"""The sparse forms of operations, made of ordinary operations on the elements, to which the gradients flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import AutogradError
from ..ops.shape.joining import cat
from ..ops.table.rows import TENSORS
from ..tensors import Tensor
from . import joining
from .products import check_alike, matrix_product, product_by_place
from .tensor import FORMS, SparseTensor

Number = (bool, int, float, complex, np.generic)


def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """Return ``input + alpha * other``: sparse if both are, with the elements of both; else dense.

    Args:
        input: a sparse or dense tensor.
        other: a sparse or dense tensor, of which one is sparse; or an array, which gives an array.
        alpha: the factor of ``other``.
        out: must be ``None``: sparse tensors have no ``out=``.

    Raises:
        TypeError: the other operand is a number.
        ValueError: both are sparse, and their shapes or sparse dimensions differ.
    """
    _no_out("add", out)
    if alpha != 1:
        other = other * alpha
    if isinstance(input, SparseTensor) and isinstance(other, SparseTensor):
        return _joined(input, other)
    sparse, dense = (input, other) if isinstance(input, SparseTensor) else (other, input)
    if isinstance(dense, Number):
        raise TypeError("add() of a sparse tensor and a number would leave no zeros; call to_dense() first")
    if isinstance(dense, np.ndarray):  # a gradient of an ordinary backward pass
        return dense + sparse.to_dense()._array
    return dense + sparse.to_dense()


def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """Return ``input - alpha * other``: sparse if both are, else dense.

    Args:
        input, other, alpha, out: as in ``add``.
    """
    return add(input, -other, alpha=alpha, out=out)


def _joined(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    check_alike("add", a, b)
    elements = cat([a._elements, b._elements])
    return SparseTensor(np.concatenate([a._places, b._places], 1), elements, a.shape)


def mul(input: Any, other: Any, *, out: Any = None) -> SparseTensor:
    """Return the product of a sparse tensor and a number, or a dense or sparse tensor of its shape: sparse.

    Args:
        input, other: a sparse tensor and the other factor, in any order.
        out: must be ``None``: sparse tensors have no ``out=``.

    Raises:
        TypeError: the shapes differ.
        ValueError: both are sparse, and their shapes or sparse dimensions differ.
    """
    _no_out("mul", out)
    if isinstance(input, SparseTensor) and isinstance(other, SparseTensor):
        return product_by_place(input, other)
    sparse, factor = (input, other) if isinstance(input, SparseTensor) else (other, input)
    return sparse.with_values(sparse._elements * _at_places("mul", sparse, factor))


def div(input: Any, other: Any, *, rounding_mode: Any = None, out: Any = None) -> SparseTensor:
    """Return a sparse tensor divided by a number or by a dense tensor of its shape: sparse.

    Args:
        input: a sparse tensor.
        other: the divisor.
        rounding_mode: must be ``None``.
        out: must be ``None``: sparse tensors have no ``out=``.

    Raises:
        TypeError: ``input`` is dense, the divisor is sparse, or the shapes differ.
    """
    _no_out("div", out)
    if not isinstance(input, SparseTensor) or rounding_mode is not None:
        raise TypeError("div() of a sparse tensor divides it by a number; call to_dense() first for anything else")
    return input.with_values(input._elements / _at_places("div", input, other))


def _at_places(name: str, sparse: SparseTensor, factor: Any) -> Any:
    if isinstance(factor, Number) or (not isinstance(factor, SparseTensor) and not factor.ndim):
        return factor
    if isinstance(factor, SparseTensor) or factor.shape != sparse.shape:
        raise TypeError(
            f"{name}() of a sparse tensor takes a number or a dense tensor of its shape, {sparse.shape}, and you gave "
            f"{type(factor).__name__} of shape {factor.shape}; call to_dense() first"
        )
    return factor[tuple(sparse._places)]


def neg(input: SparseTensor, *, out: Any = None) -> SparseTensor:
    """Return the negative: sparse."""
    _no_out("neg", out)
    return input.with_values(-input._elements)


def t(input: SparseTensor) -> SparseTensor:
    """Return a matrix with rows and columns exchanged: sparse.

    Raises:
        ValueError: ``input`` is not a matrix, or only its rows are sparse.
    """
    if input.ndim != 2 or input.sparse_dim() != 2:
        raise ValueError(
            f"t() needs a matrix with two sparse dimensions, and this has {input.sparse_dim()} in shape {input.shape}"
        )
    return SparseTensor(input._places[::-1], input._elements, input.shape[::-1])


def matmul(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """Return the product of a sparse matrix (n, m) and a dense one (m, k) or vector (m,): dense; of two sparse ones: sparse.

    Args:
        input, other: the factors, at least one of them sparse; a dense first factor has shape (k, n) or (n,).
        out: must be ``None``: sparse tensors have no ``out=``.

    Raises:
        ValueError: the shapes do not fit, or the matrix has dense dimensions.
    """
    _no_out("matmul", out)
    if not isinstance(input, SparseTensor):
        return (
            matmul(t(other), input.mT if input.ndim == 2 else input).mT if input.ndim == 2 else matmul(t(other), input)
        )
    if isinstance(other, SparseTensor):
        return matrix_product(input, other)
    if input.ndim != 2 or input.sparse_dim() != 2 or other.ndim not in (1, 2) or len(other) != input.shape[1]:
        raise ValueError(
            f"a sparse matrix of shape {input.shape} ({input.sparse_dim()} sparse dimensions) cannot be multiplied with "
            f"a tensor of shape {other.shape}; it takes ({input.shape[-1]},) or ({input.shape[-1]}, k)"
        )
    rows, columns = input._places
    elements = input._elements if other.ndim == 1 else input._elements.unsqueeze(1)
    products = elements * other[columns]
    shape = (input.shape[0], *other.shape[1:])
    if not products.numel():
        return Tensor(np.zeros(shape, products.dtype))
    return TENSORS.add_rows(shape, rows, products)


def sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over all or some dimensions: dense if no sparse dimension is left, else sparse.

    Args:
        input: a sparse tensor.
        dim: a dimension or several; all by default.
        keepdim: must be false.
        dtype: to convert the elements to before.

    Raises:
        ValueError: ``keepdim`` is true.
        IndexError: there is no such dimension.
    """
    if keepdim:
        raise ValueError("sum() of a sparse tensor drops the dimensions it sums over; call it without keepdim")
    elements = input._elements if dtype is None else input._elements.to(dtype)
    if dim is None:
        return elements.sum()
    dims = {_checked_dim(number, input.ndim) for number in ((dim,) if isinstance(dim, int) else dim)}
    sparse = input.sparse_dim()
    inner = tuple(number - sparse + 1 for number in dims if number >= sparse)
    elements = elements.sum(inner) if inner else elements
    kept = [number for number in range(sparse) if number not in dims]
    if not kept:
        return elements.sum(0)
    shape = [length for number, length in enumerate(input.shape) if number not in dims]
    return SparseTensor(input._places[kept], elements, shape).coalesce()


def _checked_dim(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(f"sum() got dimension {dim} of a tensor of {ndim} dimensions")
    return dim % ndim


def to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``input`` in another dtype, given as for ``Tensor.to``; a sparse tensor among the arguments gives its dtype."""
    if not isinstance(input, SparseTensor):  # only the dtype is asked for
        return input.to(*(arg.dtype if isinstance(arg, SparseTensor) else arg for arg in args), **kwargs)
    return input.with_values(input._elements.to(*args, **kwargs))


# -- in place


def add_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Add ``alpha * other`` to ``input`` in place, and return it.

    Args:
        input: a tensor; sparse, if ``other`` is dense it must be too.
        other: a sparse tensor.
        alpha: its factor.

    Raises:
        TypeError: ``input`` is sparse and ``other`` is dense.
    """
    if not isinstance(input, SparseTensor):
        return input.add_((other * alpha).to_dense())
    if not isinstance(other, SparseTensor):
        raise TypeError("add_() cannot write a dense sum into a sparse tensor; write dense + sparse")
    return _become(input, add(input, other, alpha=alpha))


def sub_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Subtract ``alpha * other`` from ``input`` in place, and return it.

    Args:
        input, other, alpha: as in ``add_``.
    """
    return add_(input, -other, alpha=alpha)


def mul_(input: SparseTensor, other: Any) -> SparseTensor:
    """Multiply a sparse tensor in place by a number or a dense tensor of its shape, and return it."""
    return _become(_sparse("mul_", input), mul(input, other))


def div_(input: SparseTensor, other: Any) -> SparseTensor:
    """Divide a sparse tensor in place by a number or a dense tensor of its shape, and return it."""
    return _become(_sparse("div_", input), div(input, other))


def _become(target: SparseTensor, value: SparseTensor) -> SparseTensor:
    # Other tensors may hold the elements, so they are replaced and not written into.
    if target._requires_grad and target._edge is None and value._edge is not None:
        raise AutogradError("a sparse leaf that requires grad cannot be changed in place; do it under no_grad()")
    target._places, target._elements, target._is_coalesced = value._places, value._elements, value._is_coalesced
    return target


def _sparse(name: str, target: Any) -> SparseTensor:
    if not isinstance(target, SparseTensor):
        raise TypeError(f"{name}() cannot write a sparse result into a dense tensor; call to_dense() on the other one")
    return target


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        raise TypeError(f"{name}() of sparse tensors has no out=")


FORMS.update({form.__name__: form for form in (add, sub, mul, div, neg, t, matmul, sum, to, add_, sub_, mul_, div_)})
FORMS.update(cat=joining.cat, stack=joining.stack)
FORMS.update(mm=matmul, mv=matmul, clone=SparseTensor.clone)
