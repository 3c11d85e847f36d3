"""Dropout."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from ... import core
from ...core.extend import Tensor

__all__ = ["dropout"]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """While training, zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """
    result = core.dropout(input, p, training)
    return input.copy_(result) if inplace and result is not input else result
