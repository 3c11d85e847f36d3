"""Dimensions stretched without a copy: ``expand``, ``broadcast_to`` and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...shapes import listed
from ...tensors import Tensor
from ...types import Array
from ..table.nodes import Row
from ..table.operation import operation, published
from ..table.views import view_of


def stretched(x: Array, shape: tuple[int, ...]) -> Array:
    """``x`` broadcast to ``shape``: writable if nothing is repeated."""
    if x.shape == shape:
        return x[...]
    if not x.flags.c_contiguous:
        return np.broadcast_to(x, shape)
    # The same in a third of the time.
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
    """A view of shape ``size`` in which dimensions of length 1 are repeated; -1 keeps a length.

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
    """``expand`` to the shape of ``other``."""
    return _expanded(input, other._array.shape)


@operation(method=True)
def broadcast_to(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """A view of shape ``size`` in which dimensions of length 1 are repeated; -1 keeps a length. Errors: ``expand``'s."""
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
    """Views of the tensors, all of the shape that they have together.

    Raises:
        ValueError: the shapes do not fit one another.
    """
    given = listed(tensors)
    shape = broadcast_shapes(*(tensor.shape for tensor in given))
    return tuple(_expanded(tensor, shape) for tensor in given)


@published(function=True)
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape of an element-wise operation on tensors of these shapes (or lengths).

    Raises:
        ValueError: they do not fit one another.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"the shapes {', '.join(map(str, shapes))} cannot be broadcast together") from None
