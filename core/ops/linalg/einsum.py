"""``einsum``, ``tensordot``, ``kron``: products summed over named dimensions.

Operands are first brought to one occurrence of each label (diagonals, sums), then contracted two at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...autograd.node import Edges
from ...dtypes import promote_types
from ...tensors import Tensor
from ..elementwise.conversion import to
from ..reduce import reductions
from ..shape.diagonal import diagonal
from ..shape.reshaping import reshape
from ..shape.transposing import permute
from ..table.dims import one_dim
from ..table.nodes import keep, record, records
from ..table.operation import operation
from ..table.rows import Row
from .contraction import Labels, contract, from_lists, parse, resolve

Labelled = tuple[Tensor, tuple[int, ...]]


@operation(function=True)
def einsum(*args: Any) -> Tensor:
    """Return products of tensors' elements, summed over the dimensions that the result does not name.

    ``einsum("bij,bjk->bik", x, y)``, or with lists of labels: ``einsum(x, [0, 1], y, [1, 2], [0, 2])``. ``...`` stands
    for further dimensions, which are broadcast. A label that an operand has twice takes its diagonal. Without ``->`` the
    result has the labels that occur once, in alphabetical order. More than two operands are multiplied in the order
    that ``numpy.einsum_path`` finds best.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the equation cannot be read, or does not fit the operands.
    """
    if isinstance(args[0], str):
        inputs, out = parse(args[0])
        operands = list(args[1]) if len(args) == 2 and isinstance(args[1], (tuple, list)) else list(args[1:])
    else:
        operands, inputs, out = from_lists(args)
    if len(inputs) != len(operands):
        raise ValueError(f"einsum() has subscripts for {len(inputs)} operands, and you gave {len(operands)}")
    labels, result = resolve(inputs, out, tuple([operand.ndim for operand in operands]))
    if len(operands) == 2:
        (x, y), (a, b) = operands, labels
        if _is_contraction(a, b, result, x.shape, y.shape):
            return contract(x, y, a, b, result)
    parts = _simplified(operands, labels)
    for pair in _path(parts, result):
        chosen = [parts[number] for number in pair]
        parts = [part for number, part in enumerate(parts) if number not in pair]
        parts.append(_multiplied(chosen, [part[1] for part in parts], result))
    return _ordered(*parts[0], result)


@lru_cache(maxsize=1024)
def _is_contraction(a: Labels, b: Labels, out: Labels, shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether ``contract`` takes them: each label once in a tuple, in two of the three, and of one length."""
    if len({*a}) != len(a) or len({*b}) != len(b):
        return False
    twice = {*a} & {*b} | {*a} & {*out} | {*b} & {*out}
    return twice == {*a, *b} and all(shape[a.index(name)] == other[b.index(name)] for name in {*a} & {*b})


def _simplified(operands: Sequence[Tensor], labels: Sequence[tuple[int, ...]]) -> list[Labelled]:
    """Return operands with each label once, and without dimensions of length 1 that are longer in another operand."""
    parts = [_unrepeated(operand, names) for operand, names in zip(operands, labels)]
    sizes: dict[int, int] = {}
    for operand, names in parts:
        for name, length in zip(names, operand.shape):
            have = sizes.setdefault(name, length)
            if length != have and 1 not in (length, have):
                raise ValueError(
                    f"einsum() operands have lengths {have} and {length} for one label: shapes "
                    f"{', '.join(str(each.shape) for each in operands)}"
                )
            sizes[name] = length if have == 1 else have
    return [_without_broadcast(operand, names, sizes) for operand, names in parts]


def _unrepeated(operand: Tensor, names: tuple[int, ...]) -> Labelled:
    for name in names:
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if operand.shape[first] != operand.shape[second]:
                raise ValueError(
                    f"einsum() takes the diagonal of unequal lengths in an operand of shape {operand.shape}"
                )
            operand = diagonal(operand, 0, first, second)
            names = (*(each for number, each in enumerate(names) if number not in (first, second)), name)
    return operand, names


def _without_broadcast(operand: Tensor, names: tuple[int, ...], sizes: dict[int, int]) -> Labelled:
    kept = [number for number, name in enumerate(names) if operand.shape[number] == sizes[name]]
    if len(kept) == len(names):
        return operand, names
    return reshape(operand, [operand.shape[number] for number in kept]), tuple(names[number] for number in kept)


def _path(parts: Sequence[Labelled], result: tuple[int, ...]) -> list[tuple[int, ...]]:
    if len(parts) <= 2:
        return [tuple(range(len(parts)))] if len(parts) == 2 else []
    names = {name: number for number, name in enumerate(sorted({name for _, names in parts for name in names}))}
    operands = [
        each
        for operand, labels in parts
        for each in (np.broadcast_to(np.float64(0), operand.shape), [names[label] for label in labels])
    ]
    how = "optimal" if len(parts) <= 4 else "greedy"
    path = np.einsum_path(*operands, [names[label] for label in result], optimize=how)[0][1:]
    return [tuple(step) for step in path]


def _multiplied(chosen: list[Labelled], others: list[tuple[int, ...]], result: tuple[int, ...]) -> Labelled:
    """Return the product of operands, summed over the labels that neither another operand nor the result has."""
    while len(chosen) > 1:
        (x, a), (y, b), *rest = chosen
        alike = x.dtype == y.dtype
        needed = set(result).union(*others, *(names for _, names in rest))
        x, a = _summed(x, a, needed.union(b))
        y, b = _summed(y, b, needed.union(a))
        if alike and x.dtype != y.dtype:  # one was summed: sums of integers are int64
            x, y = to(x, np.int64), to(y, np.int64)
        out = tuple(name for name in result if name in a or name in b)
        out += tuple(name for name in dict.fromkeys((*a, *b)) if name in needed and name not in out)
        chosen = [(contract(x, y, a, b, out), out), *rest]
    return chosen[0]


def _summed(x: Tensor, names: tuple[int, ...], needed: set[int]) -> Labelled:
    dims = tuple(number for number, name in enumerate(names) if name not in needed)
    return (x.sum(dims), tuple(name for name in names if name in needed)) if dims else (x, names)


def _ordered(x: Tensor, names: tuple[int, ...], result: tuple[int, ...]) -> Tensor:
    x, names = _summed(x, names, set(result))
    order = tuple(names.index(name) for name in result)
    return x if order == tuple(range(len(order))) else permute(x, order)


@operation(function=True)
def tensordot(
    a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] | Tensor = 2, *, out: Tensor | None = None
) -> Tensor:
    """Return the sum of products over the last ``dims`` dimensions of ``a`` and the first of ``b``, or over listed ones.

    The result has the other dimensions of ``a``, then those of ``b``.

    Args:
        a: any shape.
        b: any shape, of the dtype of ``a``.
        dims: the number of dimensions to sum over, or two lists: those of ``a``, and those of ``b`` in the same order.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are bool.
        ValueError: the lengths differ.
    """
    given: Any = dims.tolist() if isinstance(dims, Tensor) else dims
    if isinstance(given, int):
        if not 0 <= given <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot() cannot sum over {given} dimensions of shapes {a.shape} and {b.shape}")
        given = (range(a.ndim - given, a.ndim), range(given))
    of_a, of_b = ([one_dim(dim, x.ndim) for dim in each] for each, x in zip(given, (a, b)))
    # A length of 1 is stretched: the product with the sum over the other one's dimension.
    if long := [i for i, j in zip(of_a, of_b) if b.shape[j] == 1 != a.shape[i]]:
        a = reductions.sum(a, long, True, dtype=a.dtype)
    if long := [j for i, j in zip(of_a, of_b) if a.shape[i] == 1 != b.shape[j]]:
        b = reductions.sum(b, long, True, dtype=b.dtype)
    if len(of_a) != len(of_b) or any(a.shape[i] != b.shape[j] for i, j in zip(of_a, of_b)):
        raise ValueError(f"tensordot() needs equal lengths in dims {dims} of shapes {a.shape} and {b.shape}")
    names_a = tuple(range(a.ndim))
    names_b = tuple(of_a[of_b.index(dim)] if dim in of_b else a.ndim + dim for dim in range(b.ndim))
    kept = [name for name in names_a if name not in of_a] + [name for name in names_b if name not in of_a]
    return contract(a, b, names_a, names_b, tuple(kept))


@operation(method=True)
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the Kronecker product: each element of ``input`` is replaced by its product with ``other``.

    The lengths of the result are the products of the lengths; missing dimensions are added in front, with length 1.

    Args:
        input: any shape.
        other: any shape; both are converted to one dtype.
        out: where the result is written.
    """
    ndim = max(input.ndim, other.ndim)
    first, second = ((1,) * (ndim - x.ndim) + x.shape for x in (input, other))
    dtype = promote_types(input.dtype, other.dtype)  # here a 0-d tensor decides the dtype as much as others
    left, right = to(input, dtype), to(other, dtype)
    elements = left._array.reshape([n for length in first for n in (length, 1)])
    blocks = elements * right._array.reshape([n for length in second for n in (1, length)])
    result = Tensor(blocks.reshape([n * m for n, m in zip(first, second)]))
    if records(left, right):
        saved = keep(left) if right._requires_grad else None, keep(right) if left._requires_grad else None
        record(_KRON, result, (left, right), saved, left.shape, right.shape)
    return result


def _kron_gradients(xp: Any, g: Any, arguments: Sequence[Any], edges: Edges) -> list[Any]:
    a, b, *shapes = arguments
    first, second = ((1,) * (g.ndim - len(shape)) + shape for shape in shapes)
    blocks = xp.reshape(g, tuple(n for pair in zip(first, second) for n in pair))
    # A row for each element of the first factor, and a column for each of the second.
    by_factor = xp.transpose(blocks, (*range(0, 2 * g.ndim, 2), *range(1, 2 * g.ndim, 2)))
    rows, columns = math.prod(first), math.prod(second)
    matrix = xp.reshape(by_factor, (rows, columns))
    return [
        None if edges[0] is None else xp.reshape(xp.matmul(matrix, xp.reshape(b, (columns, 1))), shapes[0]),
        None if edges[1] is None else xp.reshape(xp.matmul(xp.reshape(a, (1, rows)), matrix), shapes[1]),
    ]


_KRON = Row("kron", pull=_kron_gradients)
