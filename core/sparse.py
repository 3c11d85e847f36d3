"""Operations on sparse tensors by name (``torch.sparse``)."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from .sparse_operations import matmul
from .sparse_operations import sum as _sum
from .sparse_tensor import SparseTensor
from .tensor import Tensor

__all__ = ["SparseTensor", "addmm", "mm", "sum"]


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, one of them sparse: dense, and differentiable in both.

    Raises:
        TypeError: both are sparse.
        ValueError: neither is sparse, or the shapes do not fit.
    """
    if not (mat1.is_sparse or mat2.is_sparse):
        raise ValueError("sparse.mm() needs a sparse matrix, and you gave two dense ones; use mm()")
    return matmul(mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with ``mat1`` sparse."""
    return mat * beta + mm(mat1, mat2) * alpha


def sum(input: Tensor, dim: Any = None, dtype: npt.DTypeLike | None = None) -> Tensor:
    """The sum of all elements, or over some dimensions: dense if no sparse dimension is left, else sparse.

    Raises:
        TypeError: ``input`` is dense.
        IndexError: there is no such dimension.
    """
    if not isinstance(input, SparseTensor):
        raise TypeError("sparse.sum() takes a sparse tensor; of a dense one, use sum()")
    return _sum(input, dim, dtype=dtype)
