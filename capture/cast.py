"""``cast``: ``astype`` that can write into memory that is there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.extend import Array


def cast(array: Array, dtype: Any, out: Array | None = None) -> Array:
    """Return the elements of an array in another dtype.

    Args:
        array: the array.
        dtype: that of the result.
        out: memory for the result, of this dtype and the shape of ``array``; new memory by default.
    """
    if out is None:
        return array.astype(dtype)
    np.copyto(out, array, casting="unsafe")
    return out
