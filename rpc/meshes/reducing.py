"""Results of several workers as one: their sum, their mean, or one after another. Pure, but for the operations of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ...base.errors import ArgumentValueError, RpcError
from ...base.words import abridged
from ...core import cat
from ...core.extend import Tensor

SUM, MEAN, CAT = 1, 2, 3
MOST_KEYS = 6  # of a dictionary, in an error
REDUCTIONS = {"sum": SUM, "mean": MEAN, "cat": CAT}


def check_reduction(name: str | None) -> int:
    """Return the number of a reduction; 0 for none.

    Raises:
        ArgumentValueError: there is none of this name.
    """
    if name is None:
        return 0
    if not isinstance(name, str) or name not in REDUCTIONS:
        raise ArgumentValueError(f"reduce= is 'sum', 'mean' or 'cat'; you gave {name!r}")
    return REDUCTIONS[name]


def summed(values: Sequence[Any]) -> Any:
    """Return the sum of some results, added up in their order.

    Tensors, arrays and numbers are added; lists, tuples and dictionaries of them part by part.

    Raises:
        RpcError: they have different structures, or cannot be added.
    """
    return reduce(_plus, values)


def finished(fold: int, total: Any, count: int) -> Any:
    """Return the result of a reduction.

    Args:
        fold: its number.
        total: for ``CAT`` all results in order, otherwise their sum.
        count: number of workers.
    """
    if fold == CAT:
        return _joined(total)
    return _each(total, lambda value: value / count) if fold == MEAN else total


def _plus(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {key: _plus(value, other[key]) for key, value in one.items()}
    if type(one) in (list, tuple) and type(one) is type(other) and len(one) == len(other):
        return type(one)(map(_plus, one, other))
    if not (_is_number(one) and _is_number(other)):
        raise RpcError(
            f"results cannot be added up: one is {_described(one)}, another {_described(other)}; return tensors, arrays or "
            f"numbers, or the same lists or dictionaries of them, or leave reduce= out"
        )
    return _fitting(lambda pair: add(*pair), (one, other), "added up", "the same shapes")


def _described(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, dict):
        return f"{kind} with the keys {abridged([*map(repr, value)], MOST_KEYS)}" if value else f"{kind} without keys"
    return f"{kind} of length {len(value)}" if type(value) in (list, tuple) else f"of type {kind}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, np.generic, int, float, complex))


def _each(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _each(part, function) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_each(part, function) for part in value)
    return function(value)


def _joined(values: Sequence[Any]) -> Any:
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    for kind, join in ((Tensor, cat), (np.ndarray, np.concatenate)):
        if all(isinstance(value, kind) for value in values):
            return _fitting(join, values, "concatenated", "the same shapes, but for the first dimension,")
    kinds = " and ".join(dict.fromkeys(type(value).__name__ for value in values))
    raise RpcError(
        f"results of type {kinds} cannot be concatenated; return tensors, arrays or lists, all of one kind, or leave "
        f"reduce= out"
    )


def _fitting(join: Callable[..., Any], values: Any, done: str, needed: str) -> Any:
    try:
        return join(values)
    except ValueError as error:  # of shapes that do not fit
        raise RpcError(f"results cannot be {done}: {error}; return {needed} on all workers") from None
