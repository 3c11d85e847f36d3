"""Settings of PyTorch that programs make first: of determinism, of precision, of the device."""

from __future__ import annotations

from typing import Any

import telegrad
from telegrad.core.extend import check_device

_PRECISIONS = ("highest", "high", "medium")
_chosen: dict[str, Any] = {"deterministic": False, "warn_only": False, "precision": "highest"}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember ``mode``; operations are deterministic without it.

    Args:
        mode: whether they must be.
        warn_only: remembered too.
    """
    _chosen.update(deterministic=bool(mode), warn_only=bool(mode and warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """Return what ``use_deterministic_algorithms`` was told."""
    return bool(_chosen["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return what ``use_deterministic_algorithms`` was told of ``warn_only``."""
    return bool(_chosen["warn_only"])


def set_float32_matmul_precision(precision: str) -> None:
    """Remember ``precision``: products of float32 are always of the highest one.

    Raises:
        RuntimeError: it is not "highest", "high" or "medium", as in PyTorch.
    """
    if precision not in _PRECISIONS:
        raise RuntimeError(f"precision is one of {', '.join(_PRECISIONS)}, and you gave {precision!r}")
    _chosen["precision"] = precision


def get_float32_matmul_precision() -> str:
    """Return what ``set_float32_matmul_precision`` was told."""
    return str(_chosen["precision"])


def set_default_device(device: Any) -> None:
    """Accept the CPU, on which all tensors are.

    Raises:
        ValueError: another device.
    """
    check_device(device)


def get_default_device() -> Any:
    """Return the CPU."""
    return telegrad.device("cpu")


def typename(obj: Any, /) -> str:
    """Return the full name of an object's class, or of a class."""
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
