"""Copies with the elements of dimensions in another order: ``flip``, ``roll``, ``rot90``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...shapes import listed
from ...tensors import Tensor
from ...types import Array
from ..index.array_elements import FULL
from ..table.dims import all_dims, one_dim
from ..table.linear_map import LinearMap
from ..table.operation import operation
from .transposing import transpose


def _flipped(x: Array, dims: tuple[int, ...]) -> Array:
    return np.array(x[tuple([_BACKWARDS if axis in dims else FULL for axis in range(x.ndim)])], order="C")


def _rolled(x: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    for shift, dim in zip(shifts, dims):
        length = x.shape[dim]
        start = -shift % length if length else 0
        tail, head = ((FULL,) * dim + (part,) for part in (slice(start, None), slice(0, start)))
        x = np.concatenate((x[tail], x[head]), dim)
    return x if dims else x.copy()


_BACKWARDS = slice(None, None, -1)
_FLIP = LinearMap("flip", _flipped, lambda g, shape, dims: _flipped(g, dims))
_ROLL = LinearMap("roll", _rolled, lambda g, shape, shifts, dims: _rolled(g, tuple(-n for n in shifts), dims))


@operation(method=True)
def flip(input: Tensor, *dims: Any) -> Tensor:
    """Return a copy with the order of the elements reversed in each dimension of ``dims``.

    Raises:
        IndexError: there is no such dimension.
        ValueError: a dimension is named twice.
    """
    given = listed(dims)
    return _FLIP(input, all_dims(given, input.ndim) if given else ())


@operation(method=True)
def fliplr(input: Tensor) -> Tensor:
    """Return a copy with the order of the elements of dimension 1 reversed.

    Raises:
        ValueError: fewer than two dimensions.
    """
    if input.ndim < 2:
        raise ValueError(f"fliplr() needs at least 2 dimensions, and the shape is {input.shape}")
    return _FLIP(input, (1,))


@operation(method=True)
def flipud(input: Tensor) -> Tensor:
    """Return a copy with the order of the elements of dimension 0 reversed.

    Raises:
        ValueError: ``input`` is 0-d.
    """
    if not input.ndim:
        raise ValueError("flipud() needs a tensor with dimensions, and this one is 0-d")
    return _FLIP(input, (0,))


@operation(method=True)
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Return a copy with elements moved by ``shifts``; those moved beyond the end come in at the beginning.

    Args:
        input: any shape and dtype.
        shifts: number of positions to move, one number for each of ``dims``; negative ones move towards the beginning.
        dims: the dimensions; ``None`` for the flattened tensor.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the numbers of shifts and dimensions differ.
    """
    steps = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None or (not isinstance(dims, int) and not len(dims)):
        if len(steps) != 1:
            raise ValueError(f"roll() needs dims for more than one shift, and you gave {steps}")
        return _ROLL(input.reshape(-1), steps, (0,)).reshape(input.shape)
    axes = (dims,) if isinstance(dims, int) else tuple(dims)
    if not input.ndim:
        raise IndexError(f"roll() has no dimension {axes} of a 0-d tensor; leave dims out")
    axes = tuple(one_dim(dim, input.ndim) for dim in axes)
    if len(axes) != len(steps):
        raise ValueError(f"roll() needs as many shifts as dims, and you gave {steps} and {dims}")
    return _ROLL(input, steps, axes)


@operation(method=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy rotated by ``k`` times 90 degrees in the plane of two dimensions.

    Args:
        input: at least 2-d, any dtype.
        k: number of rotations; negative ones rotate in the other direction.
        dims: the two dimensions; it rotates from the first towards the second.

    Raises:
        IndexError: there is no such dimension.
        ValueError: ``dims`` are not two different dimensions.
    """
    axes = tuple(one_dim(dim, input.ndim) for dim in dims)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"rot90() rotates in the plane of two different dimensions, and you gave {tuple(dims)}")
    first, second = axes
    rotated = (
        lambda: _FLIP(input, ()),
        lambda: transpose(_FLIP(input, (second,)), first, second),
        lambda: _FLIP(input, (first, second)),
        lambda: _FLIP(transpose(input, first, second), (second,)),
    )
    return rotated[k % 4]()
