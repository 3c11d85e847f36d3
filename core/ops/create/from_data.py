"""Tensors made from data, with or without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...devices import check_device
from ...dtypes import category, complex128, complex_type, converted, float64, get_default_dtype
from ...tensors import Tensor
from ...types import Array, DType, Scalar
from ..table.operation import operation


@operation(function=True)
def tensor(
    data: Any, dtype: npt.DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return a new tensor with a copy of ``data``.

    Args:
        data: nested sequences of numbers, an array, or a tensor.
        dtype: dtype of the result; by default that of an array or tensor, for Python's floats the default dtype, and for its
            integers ``int64``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: ``data`` does not hold numbers.
        ValueError: nested sequences have unequal lengths.
    """
    return finish(np.array(_to_array(data, dtype)), requires_grad, device)


@operation(function=True)
def as_tensor(data: Any, dtype: npt.DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Return a tensor that shares memory with ``data`` if it can; a tensor of the right dtype is returned itself.

    Args:
        data: nested sequences of numbers, an array, or a tensor.
        dtype: dtype of the result; by default as in ``tensor``.
        device: ``None`` or "cpu".

    Raises:
        TypeError: ``data`` does not hold numbers.
        ValueError: nested sequences have unequal lengths.
    """
    check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return Tensor(_to_array(data, dtype))


@operation(function=True)
def asarray(
    obj: Any,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``obj`` as a tensor; the array of another library shares its memory through DLPack.

    Args:
        obj: nested sequences of numbers, an array, or a tensor.
        dtype: dtype of the result; by default as in ``tensor``.
        device: ``None`` or "cpu".
        copy: whether to copy; ``None`` to copy only if necessary.
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: ``obj`` does not hold numbers.
        ValueError: ``copy=False``, and the memory cannot be shared.
    """
    if hasattr(obj, "__dlpack__") and not isinstance(obj, (Tensor, np.ndarray)):
        obj = np.from_dlpack(obj)
    result = tensor(obj, dtype) if copy else as_tensor(obj, dtype, device)
    if copy is False and not np.shares_memory(result._array, getattr(obj, "_array", obj)):
        raise ValueError(f"asarray(copy=False) cannot share the memory of {type(obj).__name__}")
    return finish(result._array, requires_grad, device) if requires_grad else result


@operation(function=True)
def scalar_tensor(
    s: Scalar, *, dtype: npt.DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return a 0-d tensor of the number ``s``.

    Args:
        s: the number.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return finish(converted(np.asarray(s), np.dtype(dtype or get_default_dtype())), requires_grad, device)


@operation(function=True)
def from_numpy(ndarray: Array) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array.

    Raises:
        TypeError: ``ndarray`` is not a NumPy array, or of a dtype that tensors cannot hold.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy() takes a NumPy array, not {type(ndarray).__name__}; use tensor() for other data")
    return Tensor(_to_array(ndarray, None))


@operation(function=True)
def frombuffer(
    buffer: Any, *, dtype: npt.DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Return a vector that shares the memory of an object with the buffer protocol.

    Args:
        buffer: ``bytes``, a ``bytearray``, a ``memoryview``, ...
        dtype: dtype of the result.
        count: the number of elements; -1 for all.
        offset: the number of bytes to skip at the beginning.
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: the buffer is too short, or its length is not a multiple of an element's.
    """
    return finish(np.frombuffer(buffer, dtype, count, offset), requires_grad)


@operation(function=True)
def from_dlpack(ext_tensor: Any, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of another library's array, through DLPack.

    Args:
        ext_tensor: the array.
        device: ``None`` or "cpu".
        copy: whether to copy the array.
    """
    check_device(device)
    array = np.from_dlpack(ext_tensor)
    return Tensor(array.copy() if copy else array)


def number_as(value: Any, dtype: DType) -> Array:
    """Return a number as a 0-d array of ``dtype``; integers that are too large wrap around.

    Raises:
        TypeError: the number is complex, and the dtype is not.
        ValueError: the number is nan or infinite, and the dtype is an integer one.
    """
    number = np.asarray(value)
    if number.dtype.kind == "c" and dtype.kind not in "bc":
        raise TypeError(f"a tensor of {dtype} cannot hold the complex number {value}")
    if dtype.kind in "iu" and number.dtype.kind == "f" and not np.isfinite(number).all():
        raise ValueError(f"a tensor of {dtype} cannot hold {value}")
    return number.astype(dtype)


def _to_array(data: Any, dtype: npt.DTypeLike | None) -> Array:
    if isinstance(data, Tensor):
        data = data._array
    if isinstance(data, (list, tuple)) and _holds_tensor(data):
        data = _unwrap(data)
    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(f"nested sequences must be of equal lengths in each dimension, not {_shown(data)}") from None
    if array.dtype.kind not in "biufcV":
        raise TypeError(f"tensors hold numbers and booleans, and you gave {_shown(data)}")
    if dtype is None and array.dtype in (float64, complex128) and not isinstance(data, (np.ndarray, np.generic)):
        usual = get_default_dtype()
        dtype = usual if array.dtype == float64 else complex_type(usual)
    category(array.dtype)  # raises for dtypes that tensors cannot hold
    return array if dtype is None else converted(array, np.dtype(dtype))


def _shown(data: Any) -> str:
    text = repr(data)
    return f"{text if len(text) <= 60 else text[:57] + '...'}, a {type(data).__name__}"


def _holds_tensor(data: Any) -> bool:
    return any(_holds_tensor(item) if isinstance(item, (list, tuple)) else isinstance(item, Tensor) for item in data)


def _unwrap(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_unwrap(item) for item in data]
    return data.tolist() if isinstance(data, Tensor) else data


def finish(array: Array, requires_grad: bool, device: str | None = None) -> Tensor:
    """Return a tensor that shares the memory of ``array``: the last step of every function that makes a tensor.

    Args:
        array: its elements.
        requires_grad: whether operations on it are recorded.
        device: ``None`` or "cpu".
    """
    check_device(device)
    if array.dtype.kind not in "fibucV":
        category(array.dtype)  # raises
    result = Tensor(array)
    return result.requires_grad_() if requires_grad else result
