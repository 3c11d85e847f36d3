"""``torch.utils``: data, checkpoints of activations, and handles of hooks."""

import importlib
from typing import Any

MODULES = ("checkpoint", "data", "hooks")


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"telegrad has nothing for torch.utils.{name}; torch.utils has {', '.join(MODULES)} here")
    return importlib.import_module(f"{__name__}.{name}")
