"""TorchScript's functions, which travel by their names, and its modules, which travel as the files that PyTorch saves."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torch

from ..function_names import found_by_name, reference


def reduction_of(value: Any, same_main: bool) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """Return what pickle calls, and with what, to make an object of TorchScript again; ``None`` for other objects.

    Args:
        value: an object of PyTorch.
        same_main: the receiver runs the same main script.
    """
    if isinstance(value, torch.jit.ScriptFunction):
        if (name := reference(value, same_main)) is not None:
            return found_by_name, (name,)
        return open_script, (value.save_to_buffer(),)
    if isinstance(value, torch.jit.ScriptModule):
        saved = io.BytesIO()
        torch.jit.save(value, saved)
        return open_script, (saved.getvalue(),)
    return None


def open_script(saved: bytes) -> Any:
    """Return a module of TorchScript that was saved. One that was saved from a function is called as that.

    Args:
        saved: what ``torch.jit.save`` wrote.

    Raises:
        RuntimeError: PyTorch cannot read it.
    """
    return torch.jit.load(io.BytesIO(saved))
