"""New tensors: from data, filled with a value, evenly spaced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtypes import get_default_dtype
from .tensor import Tensor
from .types import Array, Scalar

__all__ = [
    "arange",
    "as_tensor",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]


def tensor(
    data: Any, dtype: npt.DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor with a copy of ``data``: nested sequences of numbers, an array, or a tensor.

    Python floats become the default dtype and integers ``int64``; arrays keep theirs.

    Raises:
        TypeError: ``data`` does not hold numbers.
        ValueError: nested sequences of unequal lengths.
    """
    return finish(np.array(_to_array(data, dtype)), requires_grad, device)


def as_tensor(data: Any, dtype: npt.DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Like ``tensor``, but shares memory with ``data`` where it can; a tensor of the right dtype is returned itself."""
    check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return Tensor(_to_array(data, dtype))


def from_numpy(array: Array) -> Tensor:
    """A tensor over the array's own memory.

    Raises:
        TypeError: not a NumPy array, or of a dtype that tensors cannot hold.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy() takes a NumPy array, not {type(array).__name__}; use tensor() for other data")
    return Tensor(_to_array(array, None))


def from_dlpack(source: Any) -> Tensor:
    """A tensor over the memory of another library's array, through DLPack and without a copy."""
    return Tensor(np.from_dlpack(source))


def zeros(
    *size: Any, dtype: npt.DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Zeros of shape ``size``, in the default dtype."""
    return finish(np.zeros(to_shape(size), dtype or get_default_dtype()), requires_grad, device)


def ones(
    *size: Any, dtype: npt.DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Ones of shape ``size``, in the default dtype."""
    return finish(np.ones(to_shape(size), dtype or get_default_dtype()), requires_grad, device)


def empty(
    *size: Any, dtype: npt.DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of shape ``size`` whose elements are whatever the memory held."""
    return finish(np.empty(to_shape(size), dtype or get_default_dtype()), requires_grad, device)


def full(
    size: int | Sequence[int],
    fill_value: Scalar,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``fill_value`` in shape ``size``; the dtype is the value's, floats in the default dtype."""
    chosen = dtype or _dtype_of(fill_value)
    return finish(np.full(to_shape((size,)), fill_value, chosen), requires_grad, device)


def zeros_like(input: Tensor, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape and dtype of ``input``."""
    return finish(np.zeros(input.shape, dtype or input.dtype), requires_grad)


def ones_like(input: Tensor, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape and dtype of ``input``."""
    return finish(np.ones(input.shape, dtype or input.dtype), requires_grad)


def empty_like(input: Tensor, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Uninitialised, of the shape and dtype of ``input``."""
    return finish(np.empty(input.shape, dtype or input.dtype), requires_grad)


def full_like(
    input: Tensor,
    fill_value: Scalar,
    dtype: npt.DTypeLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``fill_value`` in the shape and dtype of ``input``."""
    return finish(np.full(input.shape, fill_value, dtype or input.dtype), requires_grad)


def arange(
    start: Scalar,
    end: Scalar | None = None,
    step: Scalar = 1,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``start``, ``start + step``, ... below ``end``; ``arange(end)`` starts at 0. ``int64`` if all are integers.

    Raises:
        ValueError: ``step`` is zero, or leads away from ``end``.
    """
    if end is None:
        start, end = 0, start
    if step == 0 or (end - start) * step < 0:
        raise ValueError(f"arange() cannot go from {start} to {end} in steps of {step}")
    whole = all(isinstance(value, int) for value in (start, end, step))
    chosen = np.dtype(dtype or (np.int64 if whole else get_default_dtype()))
    count = math.ceil((end - start) / step)
    array: Array = np.arange(count, dtype=np.int64 if whole else np.float64)
    array = array * step + start
    return finish(array.astype(chosen, copy=False), requires_grad, device)


def linspace(
    start: Scalar,
    end: Scalar,
    steps: int,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` evenly spaced values from ``start`` to ``end``, both included."""
    return finish(np.linspace(start, end, steps, dtype=dtype or get_default_dtype()), requires_grad, device)


def eye(
    n: int,
    m: int | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones on the diagonal of an ``n`` by ``m`` matrix of zeros; ``m`` is ``n`` if left out."""
    return finish(np.eye(n, m, dtype=dtype or get_default_dtype()), requires_grad, device)


def to_shape(size: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape given as ``(2, 3)`` or as ``((2, 3),)``.

    Raises:
        TypeError: not integers.
        ValueError: a negative length.
    """
    lengths = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    try:
        shape = tuple(length.__index__() for length in lengths)
    except AttributeError:
        raise TypeError(f"a shape is made of integers, and you gave {lengths}") from None
    if any(length < 0 for length in shape):
        raise ValueError(f"a shape cannot have negative lengths, and you gave {shape}")
    return shape


def _dtype_of(value: Scalar) -> npt.DTypeLike:
    if isinstance(value, bool):
        return np.bool_
    return np.int64 if isinstance(value, int) else get_default_dtype()


def _to_array(data: Any, dtype: npt.DTypeLike | None) -> Array:
    if isinstance(data, Tensor):
        data = data._array
    if isinstance(data, (list, tuple)) and _holds_tensor(data):
        data = _unwrap(data)
    array = np.asarray(data)
    if dtype is None and array.dtype == np.float64 and not isinstance(data, (np.ndarray, np.generic)):
        dtype = get_default_dtype()
    if array.dtype.kind not in "biufc":
        raise TypeError(f"tensors hold numbers and booleans, and this data has dtype {array.dtype}")
    return array if dtype is None else array.astype(dtype, copy=False)


def _holds_tensor(data: Any) -> bool:
    return any(_holds_tensor(item) if isinstance(item, (list, tuple)) else isinstance(item, Tensor) for item in data)


def _unwrap(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_unwrap(item) for item in data]
    return data.tolist() if isinstance(data, Tensor) else data


def check_device(device: Any) -> None:
    """Tensors live on the CPU; elsewhere is an error, so that no program believes that it runs there.

    Raises:
        ValueError: a device other than the CPU.
    """
    if device is not None and str(device).split(":")[0] != "cpu":
        raise ValueError(f"there is no device {device!r}; tensors live on the cpu")


def finish(array: Array, requires_grad: bool, device: str | None = None) -> Tensor:
    """What every function that makes a tensor ends with."""
    check_device(device)
    result = Tensor(array)
    return result.requires_grad_() if requires_grad else result
