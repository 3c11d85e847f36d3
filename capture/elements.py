"""Results whose shape depends on elements: those of masks, and of searches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core.extend import Tensor

_FUNCTIONS = frozenset(
    [
        *(np.flatnonzero, np.argwhere, np.unique, np.bincount, np.compress, np.extract, np.trim_zeros),
        *(np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.ndarray.compress),
    ]
)
_REPETITIONS = (np.repeat, np.ndarray.repeat)
_OPERATIONS = frozenset(
    [
        *("masked_select", "nonzero", "argwhere", "unique", "unique_consecutive", "repeat_interleave", "bincount"),
        *("one_hot", "where"),
    ]
)


def shape_by_elements(function: Callable[..., Any], args: Iterable[Any]) -> bool:
    """Return whether the shape of what a function of NumPy returns may depend on elements.

    Args:
        function: the function.
        args: its arguments, with arrays or what has their dtypes.
    """
    if function is operator.getitem:
        return _has_mask(tuple(args)[1])
    return function in _FUNCTIONS or (
        function in _REPETITIONS and any(hasattr(each, "dtype") for each in tuple(args)[1:])
    )


def operation_by_elements(name: str, tensors: Iterable[Tensor]) -> bool:
    """Return whether the shapes of an operation's results may depend on elements.

    Args:
        name: of the operation.
        tensors: among its arguments.
    """
    return name in _OPERATIONS or ("getitem" in name and any(each._array.dtype == np.bool_ for each in tensors))


def _has_mask(index: Any) -> bool:
    parts = index if isinstance(index, (tuple, list)) else (index,)
    return any(getattr(part, "dtype", None) == np.bool_ for part in parts)
