"""Gradients of PyTorch's leaves on one worker, held until the pass brings no more: PyTorch accumulates each once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from .graph import sum_of


class HeldGradients:
    """Leaves of PyTorch and their gradients in one pass. Any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[int, tuple[Any, Any]] = {}  # by id() of the leaf

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._held)

    def add(self, leaf: Any, gradient: Any) -> None:
        """Add to the gradient of a leaf."""
        with self._lock:
            held = self._held.get(id(leaf))
            self._held[id(leaf)] = leaf, gradient if held is None else sum_of(leaf, held[1], gradient)

    def accumulate(self, into: Callable[..., Any]) -> None:
        """Give all to ``into``, which accumulates in the context, and hold none."""
        with self._lock:
            held, self._held = self._held, {}
        if held:
            from .torch_graph.accumulation import accumulate  # PyTorch is there if its gradients are

            accumulate(held, into)
