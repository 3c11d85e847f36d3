"""Number of threads of products of matrices: that of the OpenBLAS which NumPy has loaded."""

from __future__ import annotations

import ctypes
import numbers
from functools import cache
from typing import Any

# NumPy's wheels prefix OpenBLAS's names, and mark 64-bit indices at the end; distributions' libraries have the plain names.
_NAMES = [
    (f"{prefix}openblas_set_num_threads{ending}", f"{prefix}openblas_get_num_threads{ending}")
    for prefix in ("scipy_", "")
    for ending in ("64_", "")
]


def set_num_threads(num: int) -> None:
    """Set the number of threads that products of matrices of this process use.

    Args:
        num: number of threads, at least 1. OpenBLAS may use fewer, as it was built for a greatest number.

    Raises:
        TypeError: ``num`` is no whole number.
        RuntimeError: ``num`` is not positive; or NumPy uses another library than OpenBLAS.
    """
    if not isinstance(num, numbers.Integral):
        raise TypeError(f"set_num_threads() takes a whole number, not {num!r}")
    if num < 1:
        raise RuntimeError(f"set_num_threads() takes a number of at least 1, and you gave {num}")
    _functions()[0](int(num))


def get_num_threads() -> int:
    """Return the number of threads that products of matrices of this process use.

    Raises:
        RuntimeError: NumPy uses another library than OpenBLAS.
    """
    return int(_functions()[1]())


@cache
def _functions() -> tuple[Any, Any]:
    """Return OpenBLAS's functions that set and get the number of threads."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "openblas" in line or "libblas" in line}
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        for setter, getter in _NAMES:
            if hasattr(library, setter) and hasattr(library, getter):
                return getattr(library, setter), getattr(library, getter)
    raise RuntimeError(
        "NumPy uses no OpenBLAS whose threads you can set; set OMP_NUM_THREADS or its own variable before the start"
    )
