"""``hash_tensor``: the exclusive or of all elements' bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import is_floating
from ...tensors import Tensor
from ...types import Dims
from ..table.dims import all_dims
from ..table.operation import operation
from .extremes import not_empty

_xor: Any = np.bitwise_xor.reduce


@operation(method=True)
def hash_tensor(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None
) -> Tensor:
    """Return the exclusive or of the bits of elements over ``dim``, in 64 bits: of float64 or int64. The dtype is uint64.

    Args:
        input: any shape, real.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        mode: must be 0.
        out: where the result is written.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: another ``mode``, or there are no elements.
    """
    x = input._array
    if mode != 0:
        raise ValueError(f"hash_tensor() takes mode 0, and you gave {mode}")
    if x.dtype.kind == "c":
        raise TypeError(f"hash_tensor() takes real numbers, not {x.dtype}")
    dims = all_dims(dim, x.ndim)
    not_empty("hash_tensor", x, dims)
    bits = x.astype(np.float64 if is_floating(x.dtype) else np.int64).view(np.uint64)
    return Tensor(np.asarray(_xor(bits, dims, keepdims=keepdim)))
