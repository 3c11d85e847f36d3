"""Operations that make new tensors: they have no gradient to check, and have tests of their own."""

from __future__ import annotations

from ...core.extend import OPERATIONS
from ...core.ops.create import filled_tensors, filling, from_data, ranges
from ...core.ops.random import sampling
from ...core.ops.spectral import window_functions

EXEMPT = {
    name: "makes a tensor of numbers"
    for name, operation in OPERATIONS.items()
    if operation.__module__
    in [module.__name__ for module in (from_data, filled_tensors, sampling, ranges, window_functions)]
}
EXEMPT |= {
    name: "replaces all elements; tests/core/test_random_tensors.py"
    for name, operation in OPERATIONS.items()
    if operation.__module__ == filling.__name__
}
