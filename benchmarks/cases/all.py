"""List of all cases of the RPC benchmark."""

from __future__ import annotations

from . import calls, footprint, groups, model, rates
from .base import Case

CASES: tuple[Case, ...] = (*calls.CASES, *rates.CASES, *model.CASES, *groups.CASES, *footprint.CASES)


def named(name: str) -> Case:
    """Return the case called ``name``.

    Raises:
        KeyError: there is none.
    """
    return {case.name: case for case in CASES}[name]
