"""Names of element types in a message's tables: NumPy's own string, or the name of a registered type such as bfloat16."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=1024)
def dtype_name(dtype: np.dtype[Any]) -> bytes:
    """Return the name by which ``find_dtype`` finds this type; empty if there is none (records, Python objects)."""
    if dtype.hasobject:
        return b""
    for name in (dtype.str, dtype.name):
        try:
            if np.dtype(name) == dtype:
                return name.encode()
        except TypeError:
            continue  # a name that NumPy does not know
    return b""


@lru_cache(maxsize=1024)
def find_dtype(name: bytes) -> np.dtype[Any] | None:
    """Return the type of that name; ``None`` if this process does not know it."""
    try:
        return np.dtype(name.decode())
    except (TypeError, ValueError, SyntaxError):  # NumPy parses names with commas as Python
        return None
