"""Checks of arguments ``dim``, and named tuples of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...tensors import Tensor
from ...types import Dims


def one_dim(dim: int, ndim: int) -> int:
    """Return ``dim`` counted from the front; a 0-d tensor has dimension 0 and -1, as in PyTorch.

    Raises:
        IndexError: there is no such dimension.
    """
    if type(dim) is not int:
        dim = _whole(dim)
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"dim {dim} is out of range: a tensor of {ndim} dimensions takes {-bound} to {bound - 1}")
    return dim % bound


def all_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return ``dim`` as a tuple of dimensions counted from the front; ``None`` and ``()`` mean all.

    Raises:
        IndexError: there is no such dimension.
        ValueError: a dimension is named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if not isinstance(dim, (tuple, list)):
        axis = one_dim(dim, ndim)  # type: ignore[arg-type]
        return (axis,) if ndim else ()
    if not dim:
        return tuple(range(ndim))
    dims = tuple(one_dim(each, ndim) for each in dim)
    if len(set(dims)) != len(dims):
        raise ValueError(f"dim {tuple(dim)} names a dimension twice")
    return dims if ndim else ()


def _whole(dim: Any) -> int:
    try:
        return int(dim.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"a dimension is an integer, and you gave {dim!r}") from None


def kept_shape(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    """Return ``shape`` with length 1 in the reduced dimensions ``dims``."""
    return tuple(1 if axis in dims else length for axis, length in enumerate(shape))


class ValuesIndices(NamedTuple):
    """Selected elements, and their indices in the dimension, int64."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """Result of ``aminmax``."""

    min: Tensor
    max: Tensor
