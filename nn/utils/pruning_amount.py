"""Checks of how much of a parameter is pruned, and along which dimension."""

from __future__ import annotations

import numbers

from ...core.extend import Tensor


def check_amount(amount: float) -> float:
    """Return ``amount``: a share from 0 to 1 as a float, or a number of elements.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative, or a float above 1.
    """
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"amount must be a number, and you gave {amount!r}")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1):
        raise ValueError(f"amount must be a number of elements or a share from 0 to 1, and you gave {amount!r}")
    return amount


def number_to_prune(amount: float, size: int) -> int:
    """Return how many of ``size`` elements ``amount`` stands for.

    Raises:
        ValueError: it is more than ``size``.
    """
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount is {amount}, and there are only {size} to prune")
    return int(amount)


def check_structured(t: Tensor, dim: int) -> None:
    """Check that a tensor has slices along ``dim``.

    Raises:
        ValueError: it has fewer than two dimensions.
        IndexError: it has no dimension ``dim``.
    """
    if t.ndim < 2:
        raise ValueError(f"whole slices can be pruned of two dimensions or more, and yours has shape {t.shape}")
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"dim is {dim}, and the tensor has shape {t.shape}")
