"""The few type names that the whole core shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .tensor import Tensor

Array: TypeAlias = npt.NDArray[Any]
DType: TypeAlias = np.dtype[Any]
Scalar: TypeAlias = bool | int | float
Operand: TypeAlias = Union["Tensor", Array, bool, int, float, complex]
Dims: TypeAlias = int | Sequence[int] | None
# A version counter: a list of one number, shared by every tensor over the same memory. A list because it is the
# cheapest mutable object there is, and one is made for every result of every operation.
Counter: TypeAlias = list[int]
