"""Modules of Telegrad and of PyTorch, told apart without an import of PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from .module import Module


def is_module(value: Any) -> bool:
    """Return whether an object is a module, ours or PyTorch's."""
    return isinstance(value, Module) or is_module_of_torch(value)


def is_module_of_torch(value: Any) -> bool:
    """Return whether an object is a module of PyTorch."""
    torch = sys.modules.get("torch.nn")
    return torch is not None and isinstance(value, torch.Module)
