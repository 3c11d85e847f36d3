"""Products of two sparse tensors, place by place and as matrices: sparse, and differentiable in both."""

from __future__ import annotations

import numpy as np

from ..tensors import Tensor
from .tensor import SparseTensor


def check_alike(name: str, a: SparseTensor, b: SparseTensor) -> None:
    """Check that two sparse tensors have one shape, and the same dimensions sparse.

    Args:
        name: the operation, for the error.
        a, b: the tensors.

    Raises:
        ValueError: they do not.
    """
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise ValueError(
            f"{name}() needs sparse tensors alike, and you gave shapes {a.shape} and {b.shape}, of which the first "
            f"{a.sparse_dim()} and {b.sparse_dim()} dimensions are sparse"
        )


def product_by_place(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Return the product of the elements that both have, at their places.

    Raises:
        ValueError: their shapes or sparse dimensions differ.
    """
    check_alike("mul", a, b)
    a, b = a.coalesce(), b.coalesce()
    _, ours, theirs = np.intersect1d(a._rows(), b._rows(), assume_unique=True, return_indices=True)
    return SparseTensor(a._places[:, ours], a._elements[ours] * b._elements[theirs], a.shape, coalesced=True)


def matrix_product(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Return the product of matrices (n, m) and (m, k), whose two dimensions are sparse.

    Each element of ``a`` meets those of the row of ``b`` that its column names.

    Raises:
        ValueError: the shapes do not fit, or a matrix has dense dimensions.
    """
    if not a.ndim == a.sparse_dim() == b.ndim == b.sparse_dim() == 2 or a.shape[1] != b.shape[0]:
        raise ValueError(
            f"sparse tensors of shapes {a.shape} and {b.shape} ({a.sparse_dim()} and {b.sparse_dim()} sparse dimensions) "
            f"cannot be multiplied; it takes (n, m) and (m, k), two sparse dimensions each"
        )
    b = b.coalesce()  # in order of its rows
    starts = np.searchsorted(b._places[0], a._places[1], "left")
    counts = np.searchsorted(b._places[0], a._places[1], "right") - starts
    ours = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = np.repeat(starts, counts) + within
    places = np.stack([a._places[0][ours], b._places[1][theirs]])
    return SparseTensor(places, a._elements[ours] * b._elements[theirs], (a.shape[0], b.shape[1])).coalesce()


def sampled_product(pattern: SparseTensor, a: Tensor, b: Tensor) -> SparseTensor:
    """Return the elements of a product of dense matrices at the places of ``pattern``.

    Args:
        pattern: coalesced, shape (..., n, m).
        a: matrices (..., n, k).
        b: matrices (..., k, m).

    Raises:
        ValueError: the shapes do not fit, or ``pattern`` has dense dimensions.
    """
    if (
        pattern.dense_dim()
        or pattern.ndim < 2
        or not a.ndim == b.ndim == pattern.ndim
        or a.shape[-1] != b.shape[-2]
        or pattern.shape != (*a.shape[:-1], b.shape[-1])
        or a.shape[:-2] != b.shape[:-2]
    ):
        raise ValueError(f"a sparse tensor of shape {pattern.shape} does not fit matrices {a.shape} and {b.shape}")
    *batch, row, column = pattern._places
    rows, columns = (*batch, row), (*batch, column)
    products = a[rows] * b.mT[columns]
    return SparseTensor(pattern._places, products.sum(-1), pattern.shape, coalesced=True)
