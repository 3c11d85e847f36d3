"""Answers to programs that look for a GPU (``torch.cuda``): there is none, and all tensors are on the CPU.

A function that only asks, or that has nothing to do without a GPU, is there. One that uses a GPU raises the error of PyTorch
without CUDA.
"""

from __future__ import annotations

from typing import Any, NoReturn

NO_GPU = (
    "there is no GPU, all tensors are on the cpu: leave torch.cuda.{} out, or call it if torch.cuda.is_available() only"
)
USES_A_GPU = {
    "current_device",
    "current_stream",
    "default_stream",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "init",
    "initial_seed",
    "mem_get_info",
}
"""Functions that raise when they are called."""


def is_available() -> bool:
    """Return ``False``."""
    return False


is_initialized = is_bf16_supported = is_available


def device_count() -> int:
    """Return 0."""
    return 0


def memory_allocated(device: object = None) -> int:
    """Return 0: there is no GPU memory.

    Args:
        device: not used.
    """
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def get_rng_state_all() -> list[Any]:
    """Return an empty list: the states of no GPU."""
    return []


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


def set_device(device: Any) -> None:
    """Do nothing for a number below 0, as in PyTorch.

    Args:
        device: the number or name of a GPU.

    Raises:
        AssertionError: any other device, as PyTorch without CUDA raises it.
    """
    if not (isinstance(device, int) and device < 0):
        _refuse("set_device")


def _refuse(name: str) -> NoReturn:
    raise AssertionError(NO_GPU.format(name))


def __getattr__(name: str) -> Any:
    if name not in USES_A_GPU:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: there is no GPU")

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        """Raise ``AssertionError``: there is no GPU."""
        _refuse(name)

    return refuse
