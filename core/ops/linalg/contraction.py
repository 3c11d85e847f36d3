"""Two tensors multiplied and summed over shared dimensions, which are named by labels: the step that ``einsum`` is made of.

It is mapped to a matrix product: dimensions of both that stay are its batch, those of one are rows and columns.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..table.array_functions import matmul as product
from ..table.nodes import ARRAYS, TENSORS, Row, keep, record, records
from .matrix_products import factors

Labels = tuple[int, ...]


class Plan(NamedTuple):
    """How to bring two arrays to a matrix product and its result into order."""

    order_a: Labels
    order_b: Labels
    batch: int
    rows: int
    columns: int
    summed: int
    order_out: Labels


@lru_cache(maxsize=1024)
def plan(a: Labels, b: Labels, out: Labels) -> Plan:
    """The plan for labels that occur once in each of ``a``, ``b`` and ``out``, and in at least two of them."""
    batch = [label for label in out if label in a and label in b]
    rows = [label for label in out if label not in b]
    columns = [label for label in out if label not in a]
    summed = [label for label in a if label not in out]
    found = batch + rows + columns
    return Plan(
        tuple(map(a.index, batch + rows + summed)),
        tuple(map(b.index, batch + summed + columns)),
        len(batch),
        len(rows),
        len(columns),
        len(summed),
        tuple(map(found.index, out)),
    )


def contract_arrays(x: Array, y: Array, a: Labels, b: Labels, out: Labels) -> Array:
    """``contract`` on arrays."""
    way = plan(a, b, out)
    x, y = x.transpose(way.order_a), y.transpose(way.order_b)
    batch, rows = x.shape[: way.batch], x.shape[way.batch : way.batch + way.rows]
    columns = y.shape[way.batch + way.summed :]
    if not way.summed:
        values = x.reshape((*batch, *rows, *(1,) * way.columns)) * y.reshape((*batch, *(1,) * way.rows, *columns))
    else:
        size = math.prod(x.shape[way.batch + way.rows :])
        height, width = math.prod(rows), math.prod(columns)
        values = product(x.reshape(*batch, height, size), y.reshape(*batch, size, width))
        values = np.asarray(values).reshape((*batch, *rows, *columns))
    result: Array = values.transpose(way.order_out)
    return result


def contract(x: Tensor, y: Tensor, a: Labels, b: Labels, out: Labels) -> Tensor:
    """The sum of products over the labels that ``out`` lacks; ``a`` and ``b`` name the dimensions of ``x`` and ``y``.

    Each label occurs once in a tuple and in at least two of the three.

    Raises:
        TypeError: the dtypes differ, or are bool.
    """
    result = Tensor(contract_arrays(*factors("einsum", x, y), a, b, out))
    if records(x, y):
        saved = (keep(x) if y._requires_grad else None, keep(y) if x._requires_grad else None)
        record(_CONTRACT, result, (x, y), saved, a, b, out)
    return result


def _rule_x(xp: Any, g: Any, x: Any, y: Any, a: Labels, b: Labels, out: Labels) -> Any:
    return xp.contract(_with_dims(xp, g, out), xp.conj(y), out, b, a)


def _rule_y(xp: Any, g: Any, x: Any, y: Any, a: Labels, b: Labels, out: Labels) -> Any:
    return xp.contract(_with_dims(xp, g, out), xp.conj(x), out, a, b)


def _with_dims(xp: Any, g: Any, out: Labels) -> Any:
    return g if out else xp.reshape(g, ())


ARRAYS.contract, TENSORS.contract = contract_arrays, contract
_CONTRACT = Row("einsum", _rule_x, _rule_y, holomorphic=False)
