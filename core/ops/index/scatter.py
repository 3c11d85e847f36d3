"""Reading and writing single elements along one dimension: ``gather``, ``scatter`` and their kin.

``out[i, j] = input[index[i, j], j]`` for ``dim`` 0, and so on: ``index`` says the place along ``dim``, an element's own
position says the others.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...tensors import Operand, Tensor
from ...types import Array, Scalar
from ..table.dims import one_dim
from ..table.in_place import inplace
from ..table.operation import operation
from .array_elements import Flat, along
from .elements import GET, accumulate, overwrite
from .scatter_reduce import reduced
from .subscripts import integers, within


@operation(method=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """Return ``out[i, j] = input[index[i, j], j]`` for ``dim`` 0, and so on; the result has the shape of ``index``.

    Args:
        input: what is read.
        dim: the dimension along which ``index`` chooses.
        index: integers from 0; beside ``dim`` no longer than ``input``.
        sparse_grad: accepted; the gradient is dense.
        out: where the result is written.

    Raises:
        IndexError: an index is out of range.
        TypeError: ``index`` does not hold integers.
        ValueError: ``index`` has another number of dimensions, or is too long.
    """
    return GET(input, _where("gather", input._array, dim, index))


@operation(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return ``gather`` with ``input`` and ``indices`` broadcast together beside ``dim``; without ``dim``, ``take``.

    Args:
        input: any shape and dtype.
        indices: integers, broadcast with ``input`` beside ``dim``.
        dim: the dimension; ``None`` for the flattened tensor.

    Raises:
        IndexError: an index is out of range.
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
        raise ValueError(f"the shapes {input.shape} and {indices.shape} do not fit beside dim {dim}") from None
    places = indices.broadcast_to((*common[:axis], indices.shape[axis], *common[axis:]))._array
    wide = input.broadcast_to((*common[:axis], length, *common[axis:]))
    return gather(wide, axis, Tensor(np.where(places < 0, places + length, places)))


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
    """Return a copy with ``out[index[i, j], j] = src[i, j]`` for ``dim`` 0, and so on.

    Args:
        input: what is copied.
        dim: the dimension along which ``index`` chooses.
        index: integers from 0.
        src: a tensor of the same dtype and at least the shape of ``index``, or a number.
        value: a number, by name.
        reduce: "add" or "multiply" to combine instead of replacing (not differentiable for "multiply").

    Raises:
        IndexError: an index is out of range.
        TypeError: ``src`` is of another dtype.
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
    """``scatter`` in place.

    Args:
        input: any shape and dtype.
        dim: the dimension that ``index`` counts along.
        index: integers, with as many dimensions as ``input``.
        src: values, at least of the shape of ``index``, or a number.
        value: a number instead of ``src``.
        reduce: "add" or "multiply": combine with what is there.
    """
    return _scatter("scatter_", input, dim, index, value if src is None else src, reduce, True)


@operation(method=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with ``out[index[i, j], j] += src[i, j]`` for ``dim`` 0, and so on. Errors: those of ``scatter``.

    Args:
        input: any shape and dtype.
        dim: the dimension that ``index`` counts along.
        index: integers, with as many dimensions as ``input``.
        src: values, at least of the shape of ``index``.
    """
    return accumulate(input, *_for_writing("scatter_add", input, dim, index, src), False)


@operation(function=False, method=True)
def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``scatter_add`` in place.

    Args:
        input: any shape and dtype.
        dim: the dimension that ``index`` counts along.
        index: integers, with as many dimensions as ``input``.
        src: values, at least of the shape of ``index``.
    """
    return accumulate(input, *_for_writing("scatter_add_", input, dim, index, src), True)


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
    """Return a copy in which the elements of ``src`` that ``index`` sends to one place are reduced.

    Args:
        input: what is copied.
        dim: the dimension along which ``index`` chooses.
        index: integers from 0.
        src: a tensor of the same dtype and at least the shape of ``index``.
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether the element of ``input`` takes part too, where ``src`` has any for it.

    Raises:
        IndexError: an index is out of range.
        TypeError: ``src`` is of another dtype.
        ValueError: the shapes do not fit, or another ``reduce``.
    """
    where, source = _for_writing("scatter_reduce", input, dim, index, src)
    return reduced(input, where, source, reduce, include_self)


def _scatter(name: str, input: Tensor, dim: int, index: Tensor, src: Any, reduce: Any, in_place: bool) -> Tensor:
    if src is None:
        raise TypeError(f"{name}() needs src or value")
    where, source = _for_writing(name, input, dim, index, src)
    if reduce is None:
        return overwrite(input, where, source, in_place)
    if reduce == "add":
        return accumulate(input, where, source, in_place)
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


def _where(name: str, x: Array, dim: int, index: Tensor) -> Flat:
    places = integers(name, index)
    axis = one_dim(dim, x.ndim)
    if not x.ndim or not places.ndim:
        if x.size != 1 or places.size != 1 or max(x.ndim, places.ndim) > 1 or places.reshape(()) != 0:
            raise IndexError(f"{name}() cannot use an index of shape {places.shape} on a tensor of shape {x.shape}")
        return Flat(places)
    if places.size and (
        places.ndim != x.ndim or any(n > m for i, (n, m) in enumerate(zip(places.shape, x.shape)) if i != axis)
    ):
        raise ValueError(
            f"{name}() along dim {dim} of shape {x.shape} needs an index of {x.ndim} dimensions that is no longer beside "
            f"it, and yours has shape {places.shape}"
        )
    within(name, places, axis, x.shape[axis])
    return along(places, x.shape, axis)


# The gradient needs what is overwritten.
_multiply_ = inplace(scatter)
