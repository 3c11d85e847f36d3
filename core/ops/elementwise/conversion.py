"""Copies and conversions to other dtypes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import numpy.typing as npt

from ...devices import check_device
from ...dtypes import bfloat16 as bfloat16_type
from ...dtypes import (
    bool_,
    complex64,
    complex128,
    converted,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    is_inexact,
    uint8,
)
from ...tensors import Tensor
from ..table.nodes import record, records
from ..table.operation import operation, published
from ..table.rows import Row

_CLONE = Row("clone", lambda xp, g: g)
_CAST = Row("to", lambda xp, g, dtype: xp.cast(g, dtype), holomorphic=False)


@operation(method=True)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return a differentiable copy; it is always in row-major order, and ``memory_format`` has no effect."""
    result = Tensor(np.array(input._array, order="C"))
    return record(_CLONE, result, (input,), ()) if records(input) else result


@operation(function=False, method=True)
def to(
    input: Tensor,
    *args: Any,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    non_blocking: builtins.bool = False,
    copy: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return ``input`` in another dtype: ``to(dtype)``, ``to(other_tensor)``, ``to("cpu")``; itself if nothing changes.

    Args:
        input: any shape and dtype.
        dtype: the dtype.
        device: ``None`` or "cpu".
        non_blocking: has no effect.
        copy: whether to copy even if nothing changes.
        memory_format: has no effect: every copy is in row-major order.

    Raises:
        ValueError: the device is not the CPU.
    """
    for argument in (*args, device):
        if isinstance(argument, Tensor):
            dtype = argument.dtype
        elif isinstance(argument, str) and argument.split(":")[0] in ("cpu", "cuda", "mps", "xpu", "meta"):
            check_device(argument)
        elif argument is not None and not isinstance(argument, builtins.bool):
            dtype = argument
    flags = [argument for argument in args if isinstance(argument, builtins.bool)]  # non_blocking, copy
    copy = copy or (len(flags) == 2 and flags[1])
    wanted = input.dtype if dtype is None else np.dtype(dtype)
    if wanted == input.dtype:
        return clone(input) if copy else input
    result = Tensor(converted(input._array, wanted))
    if records(input) and is_inexact(wanted):
        record(_CAST, result, (input,), (), input.dtype)
    return result


@published(function=False, method=True)
def cuda(input: Tensor, device: Any = None, non_blocking: builtins.bool = False) -> Tensor:
    """Raise an error: there is no device but the CPU.

    Args:
        input: any shape and dtype.
        device: any.
        non_blocking: has no effect.

    Raises:
        ValueError: always.
    """
    check_device("cuda")
    return input


@operation(function=False, method=True)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input`` in the dtype of ``other``."""
    return to(input, other.dtype)


def _converter(name: str, dtype: Any) -> Any:
    def convert(input: Tensor, memory_format: Any = None) -> Tensor:
        return to(input, dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"``to({dtype.name})``."
    return published(function=False, method=True)(convert)


cfloat = _converter("cfloat", complex64)
cdouble = _converter("cdouble", complex128)
half = _converter("half", float16)
float = _converter("float", float32)
double = _converter("double", float64)
bool = _converter("bool", bool_)
byte = _converter("byte", uint8)
char = _converter("char", int8)
short = _converter("short", int16)
int = _converter("int", int32)
long = _converter("long", int64)


@published(function=False, method=True)
def bfloat16(input: Tensor, memory_format: Any = None) -> Tensor:
    """Return ``to(bfloat16)``; ``memory_format`` has no effect.

    Raises:
        TypeError: the package ``ml_dtypes`` is not installed.
    """
    if bfloat16_type is None:
        raise TypeError("there is no bfloat16; install the package ml_dtypes")
    return to(input, bfloat16_type)


@published(function=False, method=True)
def type(input: Tensor, dtype: npt.DTypeLike | None = None) -> Any:
    """Return the tensor converted to ``dtype``; without ``dtype``, the name of its own dtype, such as ``"float32"``."""
    return str(input.dtype) if dtype is None else to(input, dtype)


@published(function=False, method=True)
def cpu(input: Tensor) -> Tensor:
    """Return the tensor itself: every tensor is on the CPU."""
    return input


@published(function=False, method=True)
def pin_memory(input: Tensor) -> Tensor:
    """Return the tensor itself: no device here copies from pinned memory."""
    return input


@published(function=True)
def detach(input: Tensor) -> Tensor:
    """Return a tensor that shares the memory of ``input`` and is not part of the graph."""
    return input.detach()
