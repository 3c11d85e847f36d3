"""Lists of all cases: of the RPC benchmark, and of PyTorch's tensors over Telegrad."""

from __future__ import annotations

from . import calls, footprint, groups, model, modules, programs, rates
from .base import Case

CASES: tuple[Case, ...] = (*calls.CASES, *rates.CASES, *model.CASES, *groups.CASES, *footprint.CASES)
SERVER = next(case for case in model.CASES if case.name == "parameter server")
GUESTS: tuple[Case, ...] = (*programs.CASES, SERVER, *modules.CASES)


def named(name: str) -> Case:
    """Return the case called ``name``.

    Raises:
        KeyError: there is none.
    """
    return {case.name: case for case in (*CASES, *GUESTS)}[name]
