"""What makes new tensors has no gradient to check; it has tests of its own."""

from __future__ import annotations

from ...core import creation, filled_tensors
from ...core.extend import OPERATIONS
from ...core.ops.create import ranges
from ...core.ops.random import sampling
from ...core.ops.spectral import window_functions

EXEMPT = {
    name: "makes a tensor of numbers"
    for module in (creation, filled_tensors, sampling, ranges, window_functions)
    for name in module.__all__
    if name in OPERATIONS
}
