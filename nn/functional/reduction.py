"""Checks of the arguments that losses share, the deprecated ones included."""

from __future__ import annotations

import warnings

from ...core.extend import Tensor, check_reduction

__all__: list[str] = []


def chosen_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction, also where it is named by the deprecated arguments, with a warning.

    Args:
        size_average, reduce: deprecated; ``None`` if not given.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: it is not "mean", "sum" or "none".
    """
    if size_average is not None or reduce is not None:
        chosen = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f'size_average and reduce are deprecated; use reduction="{chosen}"', stacklevel=3)
        return chosen
    check_reduction(reduction)
    return reduction


def check_same_shape(input: Tensor, target: Tensor) -> None:  # noqa: A002 - PyTorch names its arguments so
    """Raise unless input and target have one shape.

    Raises:
        ValueError: they differ.
    """
    if target.shape != input.shape:
        raise ValueError(f"the target must have the input's shape {input.shape}, not {target.shape}")
