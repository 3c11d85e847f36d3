"""Type names that all modules of the core share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
DType: TypeAlias = np.dtype[Any]
Scalar: TypeAlias = bool | int | float
Dims: TypeAlias = int | Sequence[int] | None
# A version counter: a list of one number, shared by every tensor over the same memory. A list, because it is the mutable
# object that is made fastest, and every result of every operation has one.
Counter: TypeAlias = list[int]
