"""Modules as functions: a call of a module runs its ``forward``, with hooks around it if it has some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nn import Module
from ..nn.extend import has_hooks


def body_of(function: Any) -> Any:
    """Return the function whose lines a call runs: ``forward`` of a module without hooks, and others as they are."""
    plain = isinstance(function, Module) and type(function).__call__ is Module.__call__ and not has_hooks(function)
    return function.forward if plain else function


def instead_of(body: Callable[..., Any], made: Callable[..., Any], function: Any) -> Callable[..., Any]:
    """Return a function that does what ``function`` does, by another body as long as its own is the same.

    Args:
        body: its body.
        made: does the same.
        function: a function, which is its own body, or a module.
    """
    if not isinstance(function, Module):
        return made

    def call(*args: Any, **kwargs: Any) -> Any:
        return (made if body_of(function) == body else function)(*args, **kwargs)

    return call
