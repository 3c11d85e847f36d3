"""Repetition of elements: ``expand`` without a copy, ``repeat`` and ``tile`` with one, and grids and combinations."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np

from ...array_like import as_array
from ...shapes import listed
from ...tensors import Tensor
from ...types import Array
from ..index.elements import FULL, GET
from ..table.array_functions import add_reduce
from ..table.dims import one_dim
from ..table.linear_map import LinearMap
from ..table.operation import operation, published
from ..table.rows import Row
from ..table.views import view_of
from .joining import stack
from .reshaping import reshape


def stretched(x: Array, shape: tuple[int, ...]) -> Array:
    """Return ``x`` broadcast to ``shape``, as a view; it is writable if the shapes are equal."""
    if x.shape == shape:
        return x[...]
    if not x.flags.c_contiguous:
        return np.broadcast_to(x, shape)
    # This is what np.broadcast_to does, in a third of its time.
    extra = len(shape) - x.ndim
    strides = [0] * extra
    for length, wanted, step in zip(x.shape, shape[extra:], x.strides):
        if length != wanted and length != 1:
            raise ValueError
        strides.append(step if length == wanted else 0)
    if extra < 0 or min(shape) < 0:
        raise ValueError
    result: Array = np.ndarray(shape, x.dtype, x, 0, strides)
    result.flags.writeable = False
    return result


_EXPAND = Row("expand", lambda xp, g, shape: xp.fit(g, shape, g.dtype), view=stretched, holomorphic=False)


@operation(function=False, method=True)
def expand(input: Tensor, *size: Any) -> Tensor:
    """Return a view of shape ``size`` in which dimensions of length 1 are repeated; -1 keeps a length.

    Raises:
        ValueError: a dimension of another length would have to be repeated.
    """
    shape = input._array.shape
    wanted = list(listed(size))
    extra = len(wanted) - len(shape)
    for axis, length in enumerate(wanted):
        if length == -1 and axis >= extra:
            wanted[axis] = shape[axis - extra]
    return _expanded(input, tuple(wanted))


@operation(function=False, method=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``expand`` to the shape of ``other``."""
    return _expanded(input, other._array.shape)


@operation(method=True)
def broadcast_to(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return a view of shape ``size`` in which dimensions of length 1 are repeated; -1 keeps a length. Errors: ``expand``'s."""
    return expand(input, tuple(size)) if -1 in size else _expanded(input, tuple(size))


def _expanded(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    x = input._array
    try:
        out = stretched(x, shape)
    except (ValueError, TypeError):
        raise ValueError(f"a tensor of shape {x.shape} cannot be expanded to {shape}") from None
    return view_of(input, out, _EXPAND, (shape,), (x.shape,))


@published(function=True)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Return views of the tensors, all of the shape that they have together.

    Raises:
        ValueError: the shapes do not fit one another.
    """
    given = listed(tensors)
    shape = broadcast_shapes(*(tensor.shape for tensor in given))
    return tuple(_expanded(tensor, shape) for tensor in given)


@published(function=True)
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape of an element-wise operation on tensors of these shapes (or lengths).

    Raises:
        ValueError: they do not fit one another.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"the shapes {', '.join(map(str, shapes))} cannot be broadcast together") from None


def _summed_blocks(g: Array, shape: tuple[int, ...], times: tuple[int, ...]) -> Array:
    lengths = (1,) * (len(times) - len(shape)) + shape
    blocks = g.reshape([n for pair in zip(times, lengths) for n in pair])
    return as_array(add_reduce(blocks, tuple(range(0, 2 * len(times), 2)))).reshape(shape)


_REPEAT = LinearMap("repeat", lambda x, times: np.array(np.tile(x, times)), _summed_blocks)


@operation(function=False, method=True)
def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """Return ``input`` repeated ``repeats[i]`` times in dimension ``i``; further numbers add dimensions in front.

    Raises:
        ValueError: there are fewer numbers than dimensions, or one is negative.
    """
    times = listed(repeats)
    if len(times) < input.ndim:
        raise ValueError(f"repeat() needs a number for each of the {input.ndim} dimensions, and you gave {times}")
    if min(times, default=0) < 0:
        raise ValueError(f"repeat() cannot repeat a negative number of times, and you gave {times}")
    return _REPEAT(input, tuple(int(each) for each in times))


@operation(method=True)
def tile(input: Tensor, *dims: Any) -> Tensor:
    """Return ``input`` repeated as by ``repeat``; if ``dims`` are fewer than the dimensions, 1 is added in front."""
    times = listed(dims)
    return repeat(input, (1,) * (input.ndim - len(times)) + times)


@operation(method=True)
def repeat_interleave(
    input: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Return each slice of a dimension repeated, equal ones next to each other.

    ``repeat_interleave(repeats)`` returns a vector with index i repeated ``repeats[i]`` times.

    Args:
        input: any shape and dtype; without ``repeats``, a vector of integers.
        repeats: number of repetitions: an integer for all slices, or a vector with one for each.
        dim: the dimension; ``None`` for the flattened tensor.
        output_size: the sum of ``repeats``, which is checked; not needed.

    Raises:
        IndexError: there is no such dimension.
        TypeError: ``repeats`` does not hold integers.
        ValueError: ``repeats`` has another length or a negative number, or ``output_size`` is not its sum.
    """
    if repeats is None:
        return Tensor(np.repeat(np.arange(len(input)), _counts(input._array)))
    source, axis = (reshape(input, -1), 0) if dim is None else (input, one_dim(dim, input.ndim))
    counts = _counts(repeats._array if isinstance(repeats, Tensor) else np.asarray(repeats))
    length = source.shape[axis]
    if counts.ndim and counts.size not in (1, length):
        raise ValueError(f"repeat_interleave() needs 1 or {length} numbers, and you gave {counts.size}")
    if not counts.ndim and output_size is None:
        return _INTERLEAVE(source, axis, int(counts))
    indices = np.repeat(np.arange(length), counts)
    if output_size is not None and output_size != indices.size:
        raise ValueError(f"repeat_interleave() repeats sum to {indices.size}, and output_size is {output_size}")
    return GET(source, (FULL,) * axis + (indices,))


def _summed_runs(g: Array, shape: tuple[int, ...], axis: int, times: int) -> Array:
    return as_array(add_reduce(g.reshape(*shape[: axis + 1], times, *shape[axis + 1 :]), axis + 1))


_INTERLEAVE = LinearMap("repeat_interleave", lambda x, axis, times: np.repeat(x, times, axis), _summed_runs)


def _counts(counts: Array) -> Array:
    if counts.dtype.kind not in "iu":
        raise TypeError(f"repeat_interleave() needs integers as repeats, not {counts.dtype}")
    if (counts.size and counts.min() < 0) or counts.ndim > 1:
        raise ValueError(f"repeat_interleave() needs a vector of numbers from 0 as repeats, and you gave {counts}")
    return counts


@published(function=True)
def meshgrid(*tensors: Any, indexing: Literal["ij", "xy"] = "ij") -> tuple[Tensor, ...]:
    """Return views of vectors, expanded to the coordinates of a grid ``(n_0, n_1, ...)``; with "xy", ``(n_1, n_0, ...)``.

    Raises:
        ValueError: a tensor has more than one dimension, or another ``indexing``.
    """
    given = listed(tensors)
    if indexing not in ("ij", "xy"):
        raise ValueError(f'meshgrid() takes indexing "ij" or "xy", and you gave {indexing!r}')
    if not given or any(tensor.ndim > 1 for tensor in given):
        raise ValueError(f"meshgrid() takes vectors, and you gave shapes {[tensor.shape for tensor in given]}")
    order = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        order[0], order[1] = 1, 0
    lengths = tuple(given[number].numel() for number in order)
    return tuple(
        broadcast_to(
            reshape(tensor, [1] * order.index(number) + [-1] + [1] * (len(given) - order.index(number) - 1)), lengths
        )
        for number, tensor in enumerate(given)
    )


@published(function=True)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of one element of each vector, as the rows of a matrix; a single vector as it is.

    Raises:
        ValueError: a tensor is not a vector.
    """
    if any(tensor.ndim != 1 for tensor in tensors) or not tensors:
        raise ValueError(f"cartesian_prod() takes vectors, and you gave shapes {[tensor.shape for tensor in tensors]}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(grid, -1) for grid in meshgrid(*tensors)], 1)


@operation(function=True)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all choices of ``r`` elements of a vector, ``(count, r)``, in the order of ``itertools.combinations``.

    Args:
        input: a vector.
        r: number of elements of a choice.
        with_replacement: whether an element may be chosen more than once.

    Raises:
        ValueError: ``input`` is not 1-d, or ``r`` is negative.
    """
    if input.ndim != 1 or r < 0:
        raise ValueError(f"combinations() takes a vector and r >= 0, and you gave shape {input.shape} and {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(len(input)), r))
    if not r or not rows:
        return GET(input, (np.empty((0, r) if r else (0,), np.int64),))
    return GET(input, (np.array(rows, np.int64).reshape(len(rows), r),))
