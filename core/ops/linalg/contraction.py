"""The labels of ``einsum``, and its step: two tensors multiplied and summed over shared labels.

The step is a matrix product. Its batch has the labels that both operands and the result have; its rows and columns have
those of one operand and the result.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..table.array_functions import matmul as product
from ..table.nodes import keep, record, records
from ..table.rows import ARRAYS, TENSORS, Row
from .matrix_products import factors

Labels = tuple[int, ...]


class Plan(NamedTuple):
    """Orders of dimensions for a matrix product of two arrays and its result, and the numbers of dimensions of each kind."""

    order_a: Labels  # batch, rows, summed
    order_b: Labels  # batch, summed, columns
    batch: int
    rows: int
    columns: int
    summed: int
    order_out: Labels


@lru_cache(maxsize=1024)
def plan(a: Labels, b: Labels, out: Labels) -> Plan:
    """Return the plan of a contraction.

    Args:
        a, b, out: labels of the dimensions of the operands and the result: each occurs once in a tuple, and in at least
            two of the three.
    """
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
    """Return ``contract`` on arrays.

    Args:
        x, y: arrays of one dtype.
        a, b, out: labels of their dimensions and of those of the result.
    """
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
    """Return the sum of products over the labels that ``out`` lacks.

    Args:
        x, y: tensors of one dtype.
        a, b, out: labels of their dimensions and of those of the result: each occurs once in a tuple, and in at least
            two of the three.

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


Subscripts = tuple[Any, ...]  # labels (integers), and Ellipsis at most once


@lru_cache(maxsize=1024)
def parse(equation: str) -> tuple[tuple[Subscripts, ...], Subscripts | None]:
    """Return the subscripts of the operands, and those of the result, or ``None`` without ``->``.

    Raises:
        ValueError: the equation holds something other than letters, ``...``, commas and one ``->``.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    return tuple(_subscripts(part, equation) for part in left.split(",")), _subscripts(
        right, equation
    ) if arrow else None


def _subscripts(text: str, equation: str) -> Subscripts:
    before, dots, after = text.partition("...")
    for letter in before + after:
        if not (letter.isascii() and letter.isalpha()):
            raise ValueError(
                f"einsum() takes letters, commas, ... and -> in its equation, and {equation!r} has {letter!r}"
            )
    labels = [tuple(ord(letter) for letter in part) for part in (before, after)]
    return (*labels[0], Ellipsis, *labels[1]) if dots else labels[0]


def from_lists(args: tuple[Any, ...]) -> tuple[list[Any], tuple[Subscripts, ...], Subscripts | None]:
    """Return the operands, their subscripts and those of the result of ``einsum(op1, [0, 1], op2, [1, 2], [0, 2])``.

    Raises:
        ValueError: a label is not between 0 and 51.
    """
    out = _listed(args[-1]) if len(args) % 2 else None
    pairs = args[: len(args) - len(args) % 2]
    return list(pairs[::2]), tuple(_listed(each) for each in pairs[1::2]), out


def _listed(labels: Any) -> Subscripts:
    for label in labels:
        if label is not Ellipsis and not (isinstance(label, int) and 0 <= label < 52):
            raise ValueError(f"einsum() takes labels from 0 to 51 and ... in its lists, and you gave {label!r}")
    return tuple(labels)


@lru_cache(maxsize=1024)
def resolve(
    inputs: tuple[Subscripts, ...], out: Subscripts | None, ndims: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return a label for every dimension of the operands and of the result; those of ``...`` are negative, -1 the last.

    Args:
        inputs: subscripts of the operands.
        out: subscripts of the result; by default those of ``...``, then the labels that occur once, sorted.
        ndims: numbers of dimensions of the operands.

    Raises:
        ValueError: an operand has another number of dimensions, or the result has a label twice or one that no operand has.
    """
    widths = [ndim - sum(label is not Ellipsis for label in labels) for labels, ndim in zip(inputs, ndims)]
    for number, (labels, width) in enumerate(zip(inputs, widths)):
        if width < 0 or (width and Ellipsis not in labels):
            raise ValueError(
                f"einsum() operand {number} has {ndims[number]} dimensions, and its subscripts name {ndims[number] - width}"
            )
    resolved = [_replace(labels, width) for labels, width in zip(inputs, widths)]
    widest = max([width for labels, width in zip(inputs, widths) if Ellipsis in labels], default=0)
    if out is None:
        named = [label for labels in resolved for label in labels if label >= 0]
        result = (*range(-widest, 0), *sorted(label for label in named if named.count(label) == 1))
    else:
        result = _replace(out, widest)
    known = {label for labels in resolved for label in labels}
    for label in result:
        if label not in known or result.count(label) > 1:
            raise ValueError(
                f"einsum() names {_shown(label)} in the result, where it must be once and come from an operand"
            )
    return tuple(resolved), result


def _replace(labels: Subscripts, width: int) -> tuple[int, ...]:
    if Ellipsis not in labels:
        return labels
    position = labels.index(Ellipsis)
    return (*labels[:position], *range(-width, 0), *labels[position + 1 :])


def _shown(label: int) -> str:
    return repr(chr(label)) if label >= 65 else str(label)
