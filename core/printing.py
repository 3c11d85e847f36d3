"""How a tensor looks when it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .dtypes import get_default_dtype

if TYPE_CHECKING:
    from .tensor import Tensor


def describe(tensor: Tensor) -> str:
    """``tensor([...], dtype=..., grad_fn=...)``: the dtype only where it is not the usual one."""
    array = tensor._array
    kind = type(tensor).__name__ if type(tensor).__name__ != "Tensor" else "tensor"
    parts = [np.array2string(array, separator=", ", precision=4, prefix=f"{kind}(")]
    if not array.size and array.ndim != 1:
        parts.append(f"size={array.shape}")
    if array.dtype not in (get_default_dtype(), np.int64, np.bool_):
        parts.append(f"dtype={array.dtype}")
    if tensor._edge is not None:
        parts.append(f"grad_fn=<{tensor._edge[0].name()}>")
    elif tensor._requires_grad:
        parts.append("requires_grad=True")
    return f"{kind}({', '.join(parts)})"
