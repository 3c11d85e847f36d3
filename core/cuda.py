"""What programs ask before they use a GPU (``torch.cuda``): there is none, and tensors live on the CPU."""

from __future__ import annotations


def is_available() -> bool:
    """``False``."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generators of the GPUs, of which there are none."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of the GPUs, of which there are none."""
