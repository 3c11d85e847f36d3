"""Sparse tensors, and the functions of ``torch.sparse``."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ..tensors import Tensor
from .operations import matmul
from .operations import sum as _sum
from .products import sampled_product
from .tensor import SparseTensor

__all__ = ["SparseTensor", "addmm", "mm", "sampled_addmm", "sum"]


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices, one of them sparse: dense; of two sparse ones: sparse. Differentiable in both.

    Raises:
        ValueError: neither is sparse, or the shapes do not fit.
    """
    if not (mat1.is_sparse or mat2.is_sparse):
        raise ValueError("sparse.mm() needs a sparse matrix, and you gave two dense ones; use mm()")
    return matmul(mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """Return ``beta * mat + alpha * (mat1 @ mat2)``, where a factor is sparse.

    Args:
        mat: a dense matrix (n, k).
        mat1: a matrix (n, m).
        mat2: a matrix (m, k).
        beta: the factor of ``mat``.
        alpha: the factor of the product.

    Raises:
        ValueError: neither is sparse, or the shapes do not fit.
    """
    return mat * beta + mm(mat1, mat2) * alpha


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> SparseTensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` at the places of ``input`` only. Differentiable in all three.

    PyTorch takes and returns the CSR layout, which is not there: this is the COO layout.

    Args:
        input: a sparse tensor (..., n, m), all of whose dimensions are sparse.
        mat1: dense matrices (..., n, k).
        mat2: dense matrices (..., k, m).
        beta: the factor of ``input``.
        alpha: the factor of the product.

    Raises:
        TypeError: ``input`` is dense, or a matrix is sparse.
        ValueError: the shapes do not fit.
    """
    if not isinstance(input, SparseTensor) or mat1.is_sparse or mat2.is_sparse:
        raise TypeError("sparse.sampled_addmm() takes a sparse tensor and two dense ones")
    product = sampled_product(input.coalesce(), mat1, mat2)
    return SparseTensor(
        product._places, input.coalesce()._elements * beta + product._elements * alpha, input.shape, coalesced=True
    )


def sum(input: Tensor, dim: Any = None, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return the sum over all or some dimensions: dense if no sparse dimension is left, else sparse.

    Args:
        input: a sparse tensor.
        dim: a dimension or several; all by default.
        dtype: to convert the elements to before.

    Raises:
        TypeError: ``input`` is dense.
        IndexError: there is no such dimension.
    """
    if not isinstance(input, SparseTensor):
        raise TypeError("sparse.sum() takes a sparse tensor; of a dense one, use sum()")
    return _sum(input, dim, dtype=dtype)
