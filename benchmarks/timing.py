"""Time of one call of a function."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds_of(function: Callable[[], object]) -> float:
    """Call a function, and return how many seconds it took."""
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun
