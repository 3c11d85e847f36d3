"""``torch.distributed``: process groups, calls, gradients through them, modules on other workers, optimizers."""

import importlib
from typing import Any

from ....collective import is_available as is_available

MODULES = ("algorithms", "autograd", "nn", "optim", "rpc")


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    try:
        return getattr(importlib.import_module("telegrad.collective"), name)
    except AttributeError:
        raise AttributeError(
            f"telegrad has nothing for torch.distributed.{name}; docs/migrating.md lists what is left out"
        ) from None
