"""Reading and writing single elements by their index in one dimension: ``gather``, ``scatter``, ``scatter_reduce``, ...

``out[i, j] = input[index[i, j], j]`` for ``dim`` 0: ``index`` holds the index in dimension ``dim``; in other dimensions it
is the element's own.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...tensors import Operand, Tensor
from ...types import Array, Scalar
from ..table.dims import one_dim
from ..table.in_place import inplace
from ..table.operation import operation
from ..table.watched import watched
from .array_elements import LinearIndex, gather_index
from .elements import GET, accumulate, overwrite
from .scatter_reduce import reduced
from .subscripts import check_range, integers


@operation(method=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """Return ``out[i, j] = input[index[i, j], j]`` (for ``dim`` 0 of 2-d tensors), of the shape of ``index``.

    Args:
        input: any shape and dtype.
        dim: the dimension; negative ones count from the end.
        index: integers from 0, of as many dimensions as ``input`` and not longer in those other than ``dim``.
        sparse_grad: ignored; the gradient is dense.
        out: where the result is written.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``index`` does not hold integers.
        ValueError: ``index`` has another number of dimensions, or is too long.
    """
    return watched(GET(input, _where("gather", input._array, dim, index)), index)


@operation(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return ``gather`` with ``input`` and ``indices`` broadcast together in other dimensions than ``dim``.

    Args:
        input: any shape and dtype.
        indices: integers, of as many dimensions as ``input``; negative ones count from the end.
        dim: the dimension; ``None`` for the flattened tensors.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``indices`` does not hold integers.
        ValueError: the shapes do not fit.
    """
    if dim is None:
        return take_along_dim(input.reshape(-1), indices.reshape(-1), 0)
    if input.ndim != indices.ndim or not input.ndim:
        raise ValueError(f"take_along_dim() needs as many dimensions, and you gave {input.shape} and {indices.shape}")
    axis = one_dim(dim, input.ndim)
    length = input.shape[axis]
    try:
        common = np.broadcast_shapes(*(shape[:axis] + shape[axis + 1 :] for shape in (input.shape, indices.shape)))
    except ValueError:
        raise ValueError(
            f"take_along_dim() cannot broadcast shapes {input.shape} and {indices.shape} in dimensions other than {dim}"
        ) from None
    expanded = indices.broadcast_to((*common[:axis], indices.shape[axis], *common[axis:]))._array
    wide = input.broadcast_to((*common[:axis], length, *common[axis:]))
    return gather(wide, axis, Tensor(np.where(expanded < 0, expanded + length, expanded)))


@operation(method=True)
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Operand | None = None,
    *,
    value: Scalar | None = None,
    reduce: Literal["add", "multiply"] | None = None,
) -> Tensor:
    """Return a copy of ``input`` with ``out[index[i, j], j] = src[i, j]`` (for ``dim`` 0 of 2-d tensors).

    Args:
        input: any shape and dtype.
        dim: the dimension; negative ones count from the end.
        index: integers from 0, of as many dimensions as ``input`` and not longer in those other than ``dim``.
        src: a tensor of at least the shape of ``index`` and the dtype of ``input``, or a number.
        value: a number, instead of ``src``.
        reduce: "add" or "multiply": combine with the elements of ``input`` instead of overwriting them.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``src`` has another dtype, neither ``src`` nor ``value`` is given, or ``index`` does not hold integers.
        ValueError: the shapes do not fit, or another ``reduce``.
    """
    return _scatter("scatter", input, dim, index, value if src is None else src, reduce, False)


@operation(function=False, method=True)
def scatter_(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Operand | None = None,
    *,
    value: Scalar | None = None,
    reduce: Literal["add", "multiply"] | None = None,
) -> Tensor:
    """Change ``input`` as ``scatter`` does, and return it. Errors: those of ``scatter``.

    Args:
        input: any shape and dtype.
        dim: the dimension; negative ones count from the end.
        index: integers from 0, of as many dimensions as ``input`` and not longer in those other than ``dim``.
        src: a tensor of at least the shape of ``index`` and the dtype of ``input``, or a number.
        value: a number, instead of ``src``.
        reduce: "add" or "multiply": combine with the elements of ``input`` instead of overwriting them.
    """
    return _scatter("scatter_", input, dim, index, value if src is None else src, reduce, True)


@operation(method=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy of ``input`` with ``out[index[i, j], j] += src[i, j]`` (for ``dim`` 0). Errors: those of ``scatter``.

    Args:
        input: any shape and dtype.
        dim: the dimension; negative ones count from the end.
        index: integers from 0, of as many dimensions as ``input`` and not longer in those other than ``dim``.
        src: a tensor of at least the shape of ``index`` and the dtype of ``input``.
    """
    return accumulate(input, *_for_writing("scatter_add", input, dim, index, src), False, index=index)


@operation(function=False, method=True)
def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Change ``input`` as ``scatter_add`` does, and return it. Errors: those of ``scatter``.

    Args:
        input: any shape and dtype.
        dim: the dimension; negative ones count from the end.
        index: integers from 0, of as many dimensions as ``input`` and not longer in those other than ``dim``.
        src: a tensor of at least the shape of ``index`` and the dtype of ``input``.
    """
    return accumulate(input, *_for_writing("scatter_add_", input, dim, index, src), True, index=index)


@operation(method=True, in_place=True)
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: Literal["sum", "prod", "mean", "amax", "amin"],
    *,
    include_self: bool = True,
) -> Tensor:
    """Return a copy of ``input`` with each element combined with the elements of ``src`` whose index names it.

    Args:
        input: any shape and dtype; real for "amax" and "amin".
        dim: the dimension; negative ones count from the end.
        index: integers from 0, of as many dimensions as ``input`` and not longer in those other than ``dim``.
        src: a tensor of at least the shape of ``index`` and the dtype of ``input``.
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether elements of ``input`` are combined with those of ``src``; else they are replaced.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``src`` has another dtype, or ``index`` does not hold integers.
        ValueError: the shapes do not fit, or another ``reduce``.
    """
    where, source = _for_writing("scatter_reduce", input, dim, index, src)
    return reduced(input, where, source, reduce, include_self)


def _scatter(name: str, input: Tensor, dim: int, index: Tensor, src: Any, reduce: Any, in_place: bool) -> Tensor:
    if src is None:
        raise TypeError(f"{name}() needs src or value")
    where, source = _for_writing(name, input, dim, index, src)
    if reduce is None:
        return overwrite(input, where, source, in_place, index=index)
    if reduce == "add":
        return accumulate(input, where, source, in_place, index=index)
    if reduce != "multiply":
        raise ValueError(f'{name}() takes reduce "add" or "multiply", and you gave {reduce!r}; see scatter_reduce()')
    if in_place:
        return _multiply_(input, dim, index, src, reduce=reduce)
    if not isinstance(source, Tensor):
        source = Tensor(np.full(index.shape, source, input.dtype))
    return reduced(input, where, source, "prod", True)


def _for_writing(name: str, input: Tensor, dim: int, index: Tensor, src: Any) -> tuple[Any, Any]:
    where = _where(name, input._array, dim, index)
    if not isinstance(src, Tensor):
        return where, src
    if src.dtype != input.dtype:
        raise TypeError(f"{name}() needs a src of the tensor's dtype {input.dtype}, and you gave {src.dtype}")
    if src.shape == index.shape:
        return where, src
    if src.ndim != index.ndim or any(n > m for n, m in zip(index.shape, src.shape)):
        raise ValueError(f"{name}() needs a src of at least the index's shape {index.shape}, and you gave {src.shape}")
    return where, src[tuple(slice(length) for length in index.shape)]


def _where(name: str, x: Array, dim: int, index: Tensor) -> LinearIndex:
    indices = integers(name, index)
    axis = one_dim(dim, x.ndim)
    if not x.ndim or not indices.ndim:
        if x.size != 1 or indices.size != 1 or max(x.ndim, indices.ndim) > 1 or indices.reshape(()) != 0:
            raise IndexError(f"{name}() cannot use an index of shape {indices.shape} on a tensor of shape {x.shape}")
        return LinearIndex(indices)
    if indices.size and (
        indices.ndim != x.ndim or any(n > m for i, (n, m) in enumerate(zip(indices.shape, x.shape)) if i != axis)
    ):
        raise ValueError(
            f"{name}() along dim {dim} of shape {x.shape} needs an index of {x.ndim} dimensions that is not longer in the "
            f"others, and yours has shape {indices.shape}"
        )
    check_range(name, indices, axis, x.shape[axis])
    return gather_index(indices, x.shape, axis)


# The gradient needs the values that are overwritten.
_multiply_ = inplace(scatter)
