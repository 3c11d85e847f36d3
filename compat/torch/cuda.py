"""Answers to programs that look for a GPU (``torch.cuda``): there is none, and all tensors are on the CPU."""

from __future__ import annotations


def is_available() -> bool:
    """Return ``False``."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: there are no GPUs whose generators could be seeded."""


def manual_seed_all(seed: int) -> None:
    """Do nothing: there are no GPUs whose generators could be seeded."""


def empty_cache() -> None:
    """Do nothing: there is no GPU memory."""


def synchronize(device: object = None) -> None:
    """Do nothing: operations are complete when they return.

    Args:
        device: not used.
    """
