"""PyTorch's short names of dtypes (``tg.float``, ``tg.long``), in a module of their own: they hide built-ins."""

from __future__ import annotations

import numpy as np

from . import dtypes

__all__ = ["bool", "cdouble", "cfloat", "double", "dtype", "float", "half", "int", "long", "short"]

bool = dtypes.bool_
short = dtypes.int16
int = dtypes.int32
long = dtypes.int64
half = dtypes.float16
float = dtypes.float32
double = dtypes.float64
cfloat = dtypes.complex64
cdouble = dtypes.complex128
dtype = np.dtype
