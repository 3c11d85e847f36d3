"""What makes new tensors has no gradient to check; it has tests of its own."""

from __future__ import annotations

from ...core import creation, filled_tensors, random_tensors, spaced, tapers
from ...core.extend import OPERATIONS

EXEMPT = {
    name: "makes a tensor of numbers"
    for module in (creation, filled_tensors, random_tensors, spaced, tapers)
    for name in module.__all__
    if name in OPERATIONS
}
