"""Reading, overwriting and adding elements of tensors at an index, with gradients.

All kinds of indexing (``gather``, ``index_add``, ``scatter``, ``t[mask]``, ...) convert their arguments to an index of NumPy
or ``LinearIndex``, and share the functions and gradient rules here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import is_grad_enabled
from ...tensors import Tensor
from ...types import Array
from ..table.in_place_history import changed, check_writable
from ..table.linear_map import LinearMap
from ..table.rows import Row
from ..table.watched import WatchingNode, versions_of
from .array_elements import FULL as FULL
from .array_elements import add_at, model_of, read_at, without, write_at


def _scattered(g: Array, shape: tuple[int, ...], where: Any) -> Array:
    return add_at(np.zeros(shape, g.dtype, like=model_of(g)), where, g)


def _placed(g: Array, shape: tuple[int, ...], where: Any) -> Array:
    result = np.zeros(shape, g.dtype, like=model_of(g))
    result[where] = g
    return result


# Reading: copies for arrays of indices, views for integers and slices.
GET = LinearMap("index", read_at, _scattered)
PART = LinearMap("slice", lambda x, where: x[where], _placed, view=True)
# Setting to zero, which is its own adjoint.
CLEAR = LinearMap("clear", without, lambda g, shape, where: without(g, where))

_SET = Row(
    "index_put",
    lambda xp, g, where, shape, dtype, scale: xp.masked(g, where),
    lambda xp, g, where, shape, dtype, scale: xp.fit(xp.get(g, where), shape, dtype),
    holomorphic=False,
)
_ADD = Row(
    "index_add",
    lambda xp, g, where, shape, dtype, scale: g,
    lambda xp, g, where, shape, dtype, scale: xp.fit(xp.get(g, where) * scale, shape, dtype),
    holomorphic=False,
)


def overwrite(input: Tensor, where: Any, value: Any, in_place: bool, index: Any = ()) -> Tensor:
    """Return ``input``, or a copy of it, with ``value`` written at ``where``, recorded.

    Args:
        input: any shape and dtype.
        where: an index of NumPy, or ``LinearIndex``.
        value: a tensor, array or number, broadcast.
        in_place: whether to change ``input`` itself.
        index: the tensors that ``where`` was made of, for ``watched``.
    """
    return _write(_SET, _assign, input, where, value, 1, in_place, index)


def accumulate(input: Tensor, where: Any, value: Any, in_place: bool, scale: float = 1, index: Any = ()) -> Tensor:
    """Return ``input``, or a copy of it, with ``scale * value`` added at ``where``, recorded.

    Args:
        input: any shape and dtype.
        where: an index of NumPy, or ``LinearIndex``.
        value: a tensor, array or number, broadcast.
        in_place: whether to change ``input`` itself.
        scale: factor of ``value``.
        index: the tensors that ``where`` was made of, for ``watched``.
    """
    return _write(_ADD, _increase, input, where, value, scale, in_place, index)


def _write(
    row: Row, write: Any, input: Tensor, where: Any, value: Any, scale: float, in_place: bool, index: Any
) -> Tensor:
    source = value._array if isinstance(value, Tensor) else np.asarray(value)
    recorded = is_grad_enabled() and (input._requires_grad or (isinstance(value, Tensor) and value._requires_grad))
    edge = None
    if in_place and is_grad_enabled():
        check_writable(input, recorded)
    if recorded:
        # Before the write: the edge must be that of the old value.
        value_edge = gradient_edge(value) if isinstance(value, Tensor) else None
        params = (where, source.shape, source.dtype, scale)
        edge = (WatchingNode(row, (gradient_edge(input), value_edge), (), params, versions_of(index)), 0)
    if in_place:
        write(input._array, where, source, scale)
        return changed(input, edge)
    result = Tensor(np.array(input._array, order="C"))
    write(result._array, where, source, scale)
    if edge is not None:
        result._edge, result._requires_grad = edge, True
    return result


def _assign(array: Array, where: Any, source: Array, scale: float) -> None:
    write_at(array, where, source)


def _increase(array: Array, where: Any, source: Array, scale: float) -> None:
    values = source if scale == 1 else source * np.asarray(scale).astype(array.dtype)
    if array.flags.c_contiguous:
        add_at(array, where, values)
    else:
        array += add_at(np.zeros(array.shape, array.dtype), where, values)
