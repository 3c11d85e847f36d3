"""State of autocast: whether it is enabled, and its dtype. Each thread and asyncio task has its own."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.extend import dtype_by_name, set_argument_cast
from .policies import DType, cast_to


class State(NamedTuple):
    """State: whether operations are cast, the dtype of products of matrices, and what PyTorch's programs ask for besides.

    There is no cache of weights that were cast, so ``cache_enabled`` and ``nesting`` are only remembered.
    """

    enabled: bool = False
    dtype: DType | None = None
    cache_enabled: bool = True
    nesting: int = 0


_state: ContextVar[State] = ContextVar("telegrad_autocast", default=State())  # noqa: B039 - it cannot change

present = _state.get


def change(state: State) -> None:
    """Let ``state`` be the state of this thread or task."""
    set_argument_cast(cast_to(state.dtype or default_dtype()) if state.enabled else None)
    _state.set(state)


def default_dtype() -> DType:
    """Return bfloat16.

    Raises:
        ImportError: the package ``ml_dtypes``, which has it, is not installed.
    """
    return dtype_by_name("bfloat16")


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether operations on ``device_type`` are cast; without one the question is about GPUs, as in PyTorch."""
    return device_type is not None and kind_of(device_type) == "cpu" and present().enabled


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Set whether operations are cast in this thread or task.

    Args:
        device_type: "cpu".
        enabled: whether they are cast.

    Raises:
        ValueError: it is to be enabled for a device other than the CPU.
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type  # the older form, which is about GPUs
    if kind_of(device_type) == "cpu":
        change(present()._replace(enabled=bool(enabled)))
    elif enabled:
        raise ValueError(f"there is no device {device_type!r}; autocast is for the cpu")


def get_autocast_dtype(device_type: str) -> DType:
    """Return the dtype of products of matrices on ``device_type``: for the CPU bfloat16, until it is set."""
    if kind_of(device_type) != "cpu":
        return np.dtype(np.float16)
    return present().dtype or default_dtype()


def set_autocast_dtype(device_type: str, dtype: npt.DTypeLike) -> None:
    """Set the dtype of products of matrices in this thread or task.

    Args:
        device_type: "cpu".
        dtype: bfloat16 or float16.

    Raises:
        ValueError: a device other than the CPU.
    """
    if kind_of(device_type) != "cpu":
        raise ValueError(f"there is no device {device_type!r}; autocast is for the cpu")
    change(present()._replace(dtype=np.dtype(dtype)))


def is_autocast_cpu_enabled() -> bool:
    """Return whether operations on the CPU are cast."""
    return present().enabled


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Set whether operations on the CPU are cast."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> DType:
    """Return the dtype of products of matrices on the CPU."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: npt.DTypeLike) -> None:
    """Set the dtype of products of matrices on the CPU."""
    set_autocast_dtype("cpu", dtype)


def is_autocast_cache_enabled() -> bool:
    """Return what ``set_autocast_cache_enabled`` was told; weights are cast anew each time."""
    return present().cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Remember ``enabled``; weights are cast anew each time."""
    change(present()._replace(cache_enabled=bool(enabled)))


def clear_autocast_cache() -> None:
    """Do nothing: there is no cache."""


def autocast_increment_nesting() -> int:
    """Add 1 to the number of blocks around, and return it."""
    change(present()._replace(nesting=present().nesting + 1))
    return present().nesting


def autocast_decrement_nesting() -> int:
    """Subtract 1 from the number of blocks around, and return it."""
    change(present()._replace(nesting=present().nesting - 1))
    return present().nesting


def kind_of(device_type: str) -> str:
    """Return the kind of a device, "cpu" of "cpu:0".

    Raises:
        ValueError: ``device_type`` is no string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f'autocast takes a kind of device, as "cpu", and you gave {device_type!r}')
    return device_type.partition(":")[0]
