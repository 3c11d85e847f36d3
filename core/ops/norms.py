"""Norms as PyTorch's root functions have them: of vectors, ``"fro"`` and ``"nuc"``; and distances."""

from __future__ import annotations

import numpy.typing as npt

from ..tensor import Tensor
from ..types import Dims
from . import elementwise
from .matrix_norms import matrix_norm
from .operation import operation
from .vector_norms import vector_norm

__all__ = ["dist", "norm"]
METHODS = __all__


@operation
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
) -> Tensor:
    """The norm of vectors over ``dim`` (all dimensions if ``None``), ``linalg.vector_norm``.

    Args:
        p: a number; ``inf`` and ``-inf`` give the largest and smallest absolute value, 0 the number of elements that
            are not zero. ``"fro"`` is 2; ``"nuc"`` is the sum of the singular values of matrices.

    Raises:
        TypeError: integers or booleans.
        ValueError: another name for ``p``, or the smallest of no elements.
    """
    if p == "nuc":
        rows, columns = (-2, -1) if dim is None or isinstance(dim, int) else dim
        return matrix_norm(input, "nuc", (rows, columns), keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f'norm() takes a number, "fro" or "nuc" for p, and you gave {p!r}')
    order = 2.0 if p is None or isinstance(p, str) else float(p)
    return vector_norm(input, order, dim, keepdim, dtype=dtype, out=out)


@operation
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order ``p`` of ``input - other``, broadcast."""
    return norm(elementwise.sub(input, other), p)
