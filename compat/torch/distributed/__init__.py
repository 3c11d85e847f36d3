"""``torch.distributed``: calls, gradients through them, modules on other workers, optimizers. It has no process groups."""

import importlib
from typing import Any

MODULES = ("autograd", "nn", "optim", "rpc")


def is_available() -> bool:
    """Return ``False``: there are no process groups (``init_process_group``); ``rpc.is_available()`` says True."""
    return False


def is_initialized() -> bool:
    """Return ``False``: there are no process groups."""
    return False


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(
            f"telegrad has nothing for torch.distributed.{name}; torch.distributed has {', '.join(MODULES)} here, and no "
            "process groups"
        )
    return importlib.import_module(f"{__name__}.{name}")
