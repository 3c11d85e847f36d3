"""Conjugates and real parts, as the gradient rules of linear algebra need them; what is real stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor
from ..types import Array
from .table import Row, record, records


def conjugated(input: Tensor) -> Tensor:
    """The complex conjugates, as a copy; a real tensor itself."""
    if input._array.dtype.kind != "c":
        return input
    result = Tensor(np.conjugate(input._array))
    return record(_CONJ, result, (input,), ()) if records(input) else result


def real_part(input: Tensor) -> Tensor:
    """The real parts, as a copy; a real tensor itself."""
    if input._array.dtype.kind != "c":
        return input
    result = Tensor(np.array(input._array.real))
    return record(_REAL, result, (input,), (), input._array.dtype) if records(input) else result


def conjugated_array(x: Any) -> Any:
    """``conjugated`` on arrays."""
    return np.conjugate(x) if x.dtype.kind == "c" else x


def real_array(x: Any) -> Array:
    """``real_part`` on arrays."""
    return np.asarray(x.real)


_CONJ = Row("conj", lambda xp, g: xp.conj(g))
_REAL = Row("real", lambda xp, g, dtype: xp.cast(g, dtype))
