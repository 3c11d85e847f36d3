"""Anomaly mode: an error of a backward pass, or a nan in it, is shown with the line of the forward pass that caused it."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .. import interception
from ..errors import AutogradError
from ..interception import Watcher
from .node import Node
from .saved_hooks import new_nodes

_LINES = object()
# Frames of these files are left out of the shown lines: they belong to the watching.
_OWN_FILES = (__file__, interception.__file__)


class detect_anomaly(Watcher):  # noqa: N801 - PyTorch's name
    """A ``with`` block in which operations record the line that called them, and backward passes are watched.

    Args:
        check_nan: raise when a node computes a nan from gradients without one.

    Raises:
        AutogradError: from the backward pass, when it computes a nan. The message shows the forward line; so does the
            message of any other error of a backward pass inside the block.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self._running: Node | None = None

    def watch(
        self, run: Callable[[], Any], func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the operation, and record the lines that called it.

        Args:
            run: calls the operation.
            func: the operation.
            args: its positional arguments.
            kwargs: its keyword arguments.
        """
        result = run()
        for node in new_nodes(result):
            if _LINES not in node.metadata:
                stack = [frame for frame in traceback.extract_stack() if frame.filename not in _OWN_FILES]
                node.metadata[_LINES] = "".join(traceback.format_list(stack))
                self._watch(node)
        return result

    def _watch(self, node: Node) -> None:
        known = weakref.ref(node)  # its own hooks must not keep it alive

        def before(_: Any) -> None:
            self._running = known()

        def after(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> None:
            node = known()
            self._running = None
            if self.check_nan and node is not None and _has_nan(grad_inputs) and not _has_nan(grad_outputs):
                raise AutogradError(f"{node.name()} made a nan in the backward pass.{forward_line(node)}")

        node._hook_tables().before.add(before)
        node._hook_tables().after.add(after)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        if error is not None and self._running is not None and error.args and isinstance(error.args[0], str):
            name, line = self._running.name(), forward_line(self._running)
            error.args = (f"{error.args[0]}\n{name} failed in the backward pass.{line}", *error.args[1:])
        self._running = None


class set_detect_anomaly(detect_anomaly):  # noqa: N801 - PyTorch's name
    """Turns anomaly mode on or off, until it is called again or for a ``with`` block.

    Args:
        mode: whether to turn it on.
        check_nan: raise when a node computes a nan from gradients without one.
    """

    _current: detect_anomaly | None = None

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        current = set_detect_anomaly._current
        if current is not None:
            Watcher.__exit__(current, None, None, None)
        set_detect_anomaly._current = self if mode else None
        if mode:
            super().__enter__()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if set_detect_anomaly._current is self:
            set_detect_anomaly._current = None
            super().__exit__(kind, error, tb)


def is_anomaly_enabled() -> bool:
    """Return whether ``set_detect_anomaly(True)`` is in effect."""
    return set_detect_anomaly._current is not None


def forward_line(node: Node) -> str:
    """Return the lines that called a node's operation, as text."""
    lines = node.metadata.get(_LINES)
    return f" Its forward call:\n{lines}" if lines else " Its forward call was made outside anomaly mode."


def _has_nan(grads: tuple[Any, ...]) -> bool:
    return any(
        grad is not None and grad._array.dtype.kind in "fc" and (grad._array != grad._array).any() for grad in grads
    )
