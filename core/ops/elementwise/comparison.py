"""Questions about numbers: infinite, close, equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..table.factories import coerce, test
from ..table.operation import operation


def _is(value: float) -> Any:
    return lambda x: x == value if x.dtype.kind in "fV" else np.zeros(x.shape, np.bool_)


def _signbit(x: Array) -> Any:
    return np.signbit(x) if x.dtype.kind in "fV" else x < 0


isinf = test("isinf", np.isinf, "Where ``input`` is infinite, of either sign.", method=True)
isposinf = test("isposinf", _is(np.inf), "Where ``input`` is inf.", method=True)
isneginf = test("isneginf", _is(-np.inf), "Where ``input`` is -inf.", method=True)
isreal = test("isreal", np.isreal, "Where ``input`` has no imaginary part.", method=True)
signbit = test("signbit", _signbit, "Where the sign is negative, of -0.0 too.", method=True)


@operation(method=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Where ``input`` differs from ``other`` by at most ``atol + rtol * abs(other)``; equal infinities are close.

    Raises:
        TypeError: the dtypes differ.
    """
    if input.dtype != other.dtype:
        raise TypeError(f"isclose() needs one dtype, and you gave {input.dtype} and {other.dtype}")
    x, y = coerce("isclose", input._array, other._array)
    if x.dtype.kind in "biu":
        x, y = x.astype(np.float64), y.astype(np.float64)
    difference = np.abs(x - y)
    close = (x == y) | (np.isfinite(difference) & (difference <= atol + rtol * np.abs(y)))
    return Tensor(close | (np.isnan(x) & np.isnan(y)) if equal_nan else close)


@operation(method=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether ``isclose`` holds everywhere."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@operation(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and the same elements; nan equals nothing."""
    return input.shape == other.shape and bool(np.all(input._array == other._array))
