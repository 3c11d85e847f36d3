"""Operands of element-wise operations, made ready for NumPy: arrays of one dtype, or an array and a Python number."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.errors import ArgumentTypeError
from ...array_like import ArrayLike, as_array
from ...dtypes import get_default_dtype, is_inexact, result_type
from ...tensors import Tensor
from ...types import DType

_ndarray = np.ndarray
_ARRAYS = (np.ndarray, ArrayLike)
_NUMBERS = (float, int, bool)
_TAKES_TWO_NUMBERS = frozenset({"add", "sub", "mul", "div", "floor_divide"})  # as in PyTorch, whose others refuse them


def coerce(name: str, x: Any, y: Any, floats: bool = False) -> tuple[Any, Any]:
    """Return two operands made ready for NumPy: arrays of one dtype, or an array and a Python number that keeps its dtype.

    Args:
        name: name of the operation, for messages.
        x, y: arrays or numbers; at least one is an array, except in sums, differences, products and quotients.
        floats: whether integers are converted to the default floating-point dtype.

    Raises:
        TypeError: neither is an array, or one is neither an array nor a number.
    """
    if type(x) is _ndarray and x.dtype.kind == "f" and type(y) in _NUMBERS:
        return x, y
    x, y = _plain(name, x), _plain(name, y)
    if not isinstance(x, _ARRAYS) and not isinstance(y, _ARRAYS):
        if name not in _TAKES_TWO_NUMBERS:
            raise TypeError(f"{name}() needs a tensor, and you gave two numbers")
        dtype = result_type(x, y)
        x = np.asarray(x)
    else:
        dtype = result_type(x, y)
    if floats and not is_inexact(dtype):
        dtype = get_default_dtype()
    return _as(x, dtype), _as(y, dtype)


def not_a_tensor(name: str, argument: str, value: Any) -> TypeError:
    """Return the error of an argument that must be a tensor and is not.

    Args:
        name: name of the operation.
        argument: name of the argument.
        value: what was given.
    """
    given = type(value).__name__
    return ArgumentTypeError(f"{name}(): {argument} must be a tensor, and you gave {given}; convert it by tensor()")


def check_tensor(name: str, argument: str, value: Any) -> None:
    """Raise unless ``value`` is a tensor. Arguments: those of ``not_a_tensor``.

    Raises:
        TypeError: ``value`` is not a tensor.
    """
    if not isinstance(value, Tensor):
        raise not_a_tensor(name, argument, value)


def real_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with a check that raises for complex numbers, which NumPy would order, or make real."""

    @functools.wraps(function)
    def forward(x: Any, *more: Any) -> Any:
        # Beside a complex number the array is complex too.
        if (x if isinstance(x, _ARRAYS) else more[0]).dtype.kind == "c":
            raise TypeError("complex numbers have no such function, nor an order; take abs(), .real or .imag first")
        return function(x, *more)

    return forward


def _as(operand: Any, dtype: DType) -> Any:
    if isinstance(operand, _ARRAYS):
        return operand.astype(dtype, copy=False)
    # NumPy refuses integers that do not fit, where PyTorch wraps around; beside bfloat16 it widens to float32.
    if dtype.kind == "V" or (dtype.kind in "iu" and not (-128 if dtype.kind == "i" else 0) <= operand <= 127):
        return as_array(operand).astype(dtype)
    return operand


def _plain(name: str, operand: Any) -> Any:
    if isinstance(operand, np.generic):
        return operand.item()
    if isinstance(operand, np.ndarray):
        return np.asarray(operand)
    if isinstance(operand, (bool, int, float, complex, ArrayLike)):
        return operand
    raise TypeError(f"{name}() takes tensors and numbers, not {type(operand).__name__}")
