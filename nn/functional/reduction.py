"""What losses have in common: how they are reduced, and what is said of arguments that have other names today."""

from __future__ import annotations

import warnings

from ...core.extend import Tensor

__all__: list[str] = []


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of the losses, or all of them."""
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def chosen_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that is meant; ``size_average`` and ``reduce`` are deprecated ways to say it, and warn.

    Raises:
        ValueError: it is not "mean", "sum" or "none".
    """
    if size_average is not None or reduce is not None:
        chosen = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f'size_average and reduce are deprecated; use reduction="{chosen}"', stacklevel=3)
        return chosen
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f'reduction must be "mean", "sum" or "none", and you gave {reduction!r}')
    return reduction


def check_same_shape(input: Tensor, target: Tensor) -> None:  # noqa: A002 - PyTorch names its arguments so
    """Raise unless input and target have one shape.

    Raises:
        ValueError: they differ.
    """
    if target.shape != input.shape:
        raise ValueError(f"the target must have the input's shape {input.shape}, not {target.shape}")
