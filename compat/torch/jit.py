"""TorchScript's decorators (``torch.jit``), which leave what they decorate as it is: functions travel by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def script(obj: F) -> F:
    """Return ``obj`` itself.

    Args:
        obj: a function, a class or a module.
    """
    return obj


ignore = export = unused = script_method = script


def is_scripting() -> bool:
    """Return ``False``."""
    return False
