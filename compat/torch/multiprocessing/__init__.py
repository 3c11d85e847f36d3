"""Processes (``torch.multiprocessing``): Python's own module, and ``spawn``."""

from __future__ import annotations

from multiprocessing import *  # noqa: F403

from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessException as ProcessException
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import SpawnContext as SpawnContext
from .spawn import spawn as spawn
from .spawn import start_processes as start_processes

STRATEGY = "file_system"


def get_all_sharing_strategies() -> set[str]:
    """Return the ways in which tensors may be shared with another process: here they are copied, whatever is chosen."""
    return {STRATEGY, "file_descriptor"}


def get_sharing_strategy() -> str:
    """Return the strategy that counts as chosen."""
    return STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Check the name of a strategy; nothing else follows from it.

    Raises:
        ValueError: PyTorch has no such strategy.
    """
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(
            f"new_strategy must be one of {sorted(get_all_sharing_strategies())}; you gave {new_strategy!r}"
        )
