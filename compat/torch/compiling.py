"""``compile`` (``torch.compile``), which leaves a function as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def compile(model: F | None = None, **options: Any) -> Any:  # noqa: A001
    """Return ``model`` itself; without a model, a decorator that does.

    Args:
        model: a function or a module.
        options: those of ``torch.compile``, which are not used.

    Raises:
        TypeError: ``model`` cannot be called.
    """
    if model is None:
        return compile
    if not callable(model):
        raise TypeError(f"model must be a function or a module; you gave {model!r}")
    return model
