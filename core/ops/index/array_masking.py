"""Choosing elements of arrays by a mask, for gradient rules: where the mask is false comes 0, whatever was there.

A rule that multiplied by the mask would give nan for an infinite gradient of an element that takes no part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Array

_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def chosen(mask: Any, x: Any, out: Array | None = None) -> Any:
    """``x`` where ``mask`` is true and 0 elsewhere, broadcast; written into ``out`` if that is given.

    The bits of a real number times one or zero: as fast as a product of numbers, and ten times as fast as ``np.where``.
    """
    x = np.asarray(x)
    if x.dtype.kind not in "fV" or x.itemsize not in _BITS:
        return np.where(mask, x, x.dtype.type(0))
    bits = _BITS[x.itemsize]
    into = None if out is None else out.view(bits)
    return np.asarray(np.multiply(x.view(bits), mask, out=into)).view(x.dtype)
