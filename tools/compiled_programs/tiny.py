"""``tiny_limits``: plans that treat the small arrays of random programs as large ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from ...capture.limits import LIMITS, Limits

# Chains run in blocks of a few elements; results have new memory, are made again, and gradients wait.
TINY = Limits(
    large=8, smaller=4, much=64, use=1, block=8, chain=4, group=1, rounded=False, late=0, again=0.5, operand=4
)


@contextmanager
def tiny_limits() -> Iterator[None]:
    """Lower the limits of plans until the block ends."""
    former = {field.name: getattr(LIMITS, field.name) for field in fields(LIMITS)}
    try:
        for name in former:
            setattr(LIMITS, name, getattr(TINY, name))
        yield
    finally:
        for name, value in former.items():
            setattr(LIMITS, name, value)
