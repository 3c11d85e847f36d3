"""What writing through a view gives, as a new tensor: ``select_scatter``, ``slice_scatter``; and ``index_reduce``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensors import Tensor
from ..table.dims import one_dim
from ..table.operation import operation
from .array_elements import FULL, Flat, linear_places
from .elements import overwrite
from .scatter_reduce import REDUCTIONS, reduced
from .subscripts import integers, within


@operation(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of ``input`` with ``src`` at ``index`` along ``dim``.

    Raises:
        IndexError: there is no such dimension or index.
        ValueError: ``src`` has another shape than what it replaces.
    """
    axis = one_dim(dim, input.ndim)
    length = input.shape[axis]
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for dim {dim} of length {length}")
    return _replaced("select_scatter", input, src, (FULL,) * axis + (index,))


@operation(method=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of ``input`` with ``src`` at ``start:end:step`` along ``dim``. Errors: those of ``select_scatter``."""
    return _replaced("slice_scatter", input, src, (FULL,) * one_dim(dim, input.ndim) + (slice(start, end, step),))


def _replaced(name: str, input: Tensor, src: Tensor, where: tuple[Any, ...]) -> Tensor:
    region = input._array[where].shape
    if src.shape != region:
        raise ValueError(f"{name}() needs a src of shape {region}, that of what it replaces, and you gave {src.shape}")
    return overwrite(input, where, src, False)


@operation(method=True, in_place=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Slices of ``source`` along ``dim`` reduced into those of ``input`` that ``index`` names.

    Args:
        input: what the result begins with.
        dim: along which dimension.
        index: integers, one for each slice of ``source``.
        source: of the shape of ``input``, but as long as ``index`` along ``dim``.
        reduce: ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: whether the elements of ``input`` count too where something is reduced into them.

    Raises:
        IndexError: an index is out of range.
        ValueError: the shapes do not fit, or another ``reduce``.
    """
    if reduce not in REDUCTIONS[1:]:
        raise ValueError(f"index_reduce() takes reduce {', '.join(REDUCTIONS[1:])}, and you gave {reduce!r}")
    axis = one_dim(dim, input.ndim)
    shape = input.shape
    wanted = (*shape[:axis], *index.shape, *shape[axis + 1 :])
    if index.ndim > 1 or source.shape != wanted:
        raise ValueError(f"index_reduce() needs a source of shape {wanted}, and you gave {source.shape}")
    rows = integers("index_reduce", index)
    within("index_reduce", rows, dim, shape[axis])
    where = (FULL,) * axis + (np.atleast_1d(rows),)
    return reduced(input, Flat(linear_places(shape, where)), source, reduce, include_self)
