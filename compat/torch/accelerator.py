"""Answers to programs that look for an accelerator (``torch.accelerator``): there is none."""

from __future__ import annotations


def is_available() -> bool:
    """Return ``False``."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """Return ``None``.

    Args:
        check_available: not used.
    """


def synchronize(device: object = None) -> None:
    """Do nothing: operations are complete when they return.

    Args:
        device: not used.
    """
