"""PyTorch's legacy constructors, one for each dtype: ``FloatTensor([1, 2])`` is ``tensor([1, 2], dtype=float32)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dtypes import bool_, float16, float32, float64, int8, int16, int32, int64, uint8
from ...tensors import Tensor
from ...types import DType
from ..table.operation import published
from .filled_tensors import empty
from .from_data import tensor


def _constructor(name: str, dtype: DType) -> Callable[..., Tensor]:
    def make(*data: Any) -> Tensor:
        if not data or type(data[0]) is int:
            return empty(data or (0,), dtype=dtype)
        (elements,) = data
        return tensor(elements, dtype=dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Return ``tensor(data, dtype={dtype.name})``; for lengths, ``empty(*lengths, dtype={dtype.name})``."
    make.dtype = dtype  # type: ignore[attr-defined]  # which ``Tensor.type`` and NumPy read
    return published(function=True)(make)


BoolTensor = _constructor("BoolTensor", bool_)
ByteTensor = _constructor("ByteTensor", uint8)
CharTensor = _constructor("CharTensor", int8)
DoubleTensor = _constructor("DoubleTensor", float64)
FloatTensor = _constructor("FloatTensor", float32)
HalfTensor = _constructor("HalfTensor", float16)
IntTensor = _constructor("IntTensor", int32)
LongTensor = _constructor("LongTensor", int64)
ShortTensor = _constructor("ShortTensor", int16)
