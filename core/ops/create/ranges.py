"""Evenly spaced numbers, identity matrices and the indices of triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dtypes import complex_type, get_default_dtype
from ...tensors import Tensor
from ...types import Array, Scalar
from ..table.operation import operation
from .from_data import finish


@operation(function=True, dtype_of_out=True)
def arange(
    start: Scalar,
    end: Scalar | None = None,
    step: Scalar = 1,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers ``start``, ``start + step``, ... up to ``end`` (not included); ``arange(end)`` starts at 0.

    Args:
        start: first value.
        end: the end, not included.
        step: the difference between neighbours; negative to count down.
        out: where the result is written.
        dtype: dtype of the result; by default ``int64`` if all arguments are integers, else the default dtype.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``step`` is 0 or has the wrong sign, or a number is not finite.
    """
    if end is None:
        start, end = 0, start
    start, end, step = (_number(value) for value in (start, end, step))
    if dtype is not None and np.dtype(dtype) == np.int64:
        start, end, step = int(start), int(end), int(step)
    if not all(math.isfinite(value) for value in (start, end, step)) or step == 0 or (end - start) * step < 0:
        raise ValueError(f"arange() cannot go from {start} to {end} in steps of {step}")
    whole = all(isinstance(value, int) for value in (start, end, step))
    chosen = np.dtype(dtype or (np.int64 if whole else get_default_dtype()))
    count = math.ceil((end - start) / step)
    if chosen.kind in "iu":  # only int64 is so from the start: PyTorch counts before it rounds
        start, step, whole = int(start), int(step), True
    array: Array = np.arange(count, dtype=np.int64 if whole else np.float64)
    array = array * step + start
    return finish(array.astype(chosen, copy=False), requires_grad, device)


@operation(function=True, dtype_of_out=True)
def linspace(
    start: Scalar | complex,
    end: Scalar | complex,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``steps`` evenly spaced values from ``start`` to ``end``, both included.

    Args:
        start: first value.
        end: last value.
        steps: number of values.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``steps`` is negative.
    """
    return finish(_evenly_spaced("linspace", start, end, steps, None, dtype), requires_grad, device)


@operation(function=True)
def logspace(
    start: Scalar | complex,
    end: Scalar | complex,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``base`` to the power of ``steps`` evenly spaced exponents from ``start`` to ``end``, both included.

    Args:
        start: first exponent.
        end: last exponent.
        steps: number of values.
        base: the base.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``steps`` is negative.
    """
    return finish(_evenly_spaced("logspace", start, end, steps, base, dtype), requires_grad, device)


def _evenly_spaced(
    name: str, start: Any, end: Any, steps: int, base: float | None, dtype: npt.DTypeLike | None
) -> Array:
    if steps < 0:
        raise ValueError(f"{name}() needs a number of steps that is not negative, and you gave {steps}")
    start, end = _ends(dtype, start, end)
    usual = get_default_dtype()
    chosen = np.dtype(dtype or (complex_type(usual) if isinstance(start + end, complex) else usual))
    values = np.linspace(start, end, steps)
    if chosen.kind in "iu" and steps > 1:  # computed from both ends, so that integers are exact
        number, step = np.arange(steps), (end - start) / (steps - 1)
        values = np.where(number < steps // 2, start + step * number, end - step * (steps - 1 - number))
    if base is not None:
        values = np.power(base, values)
    # For integer dtypes the values are rounded towards 0.
    return values.astype(chosen)


@operation(function=True)
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an ``n`` by ``m`` matrix with ones on its main diagonal and zeros elsewhere.

    Args:
        n: number of rows.
        m: number of columns; ``n`` if ``None``.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``n`` or ``m`` is negative.
    """
    if n < 0 or (m is not None and m < 0):
        raise ValueError(f"eye() needs lengths that are not negative, and you gave {n} and {m}")
    return finish(np.eye(n, m, dtype=dtype or get_default_dtype()), requires_grad, device)


@operation(function=True)
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: npt.DTypeLike = np.int64, device: str | None = None
) -> Tensor:
    """Return the indices of the lower triangle of a ``row`` by ``col`` matrix: shape ``(2, n)``, rows and columns.

    Args:
        row: number of rows.
        col: number of columns.
        offset: the diagonal that bounds the triangle: 0 the main one, 1 the one above, -1 the one below.
        dtype: an integer dtype; ``int64`` by default.
        device: ``None`` or "cpu".
    """
    return finish(np.stack(np.tril_indices(row, offset, col)).astype(dtype), False, device)


@operation(function=True)
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: npt.DTypeLike = np.int64, device: str | None = None
) -> Tensor:
    """Return the indices of the upper triangle of a ``row`` by ``col`` matrix: shape ``(2, n)``, rows and columns.

    Args:
        row: number of rows.
        col: number of columns.
        offset: the diagonal that bounds the triangle: 0 the main one, 1 the one above, -1 the one below.
        dtype: an integer dtype; ``int64`` by default.
        device: ``None`` or "cpu".
    """
    return finish(np.stack(np.triu_indices(row, offset, col)).astype(dtype), False, device)


def _ends(dtype: npt.DTypeLike | None, *values: Any) -> Any:
    # For integer dtypes the arguments are rounded towards 0 first.
    numbers = [_number(value) for value in values]
    return [int(number) for number in numbers] if dtype is not None and np.dtype(dtype).kind in "iu" else numbers


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, (Tensor, np.generic)) else value
