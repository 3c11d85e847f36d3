"""Anomaly mode: an error of a backward pass, or a nan in it, is shown with the line of the forward pass that caused it."""

from __future__ import annotations

import os
import traceback
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .. import interception
from ..errors import AutogradError
from ..interception import Watcher, watchers
from .forward_lines import forward_line, note_lines
from .hooks import Hook
from .node import Node
from .saved_hooks import new_nodes

# Frames of these files are left out of the shown lines: they belong to the operations and to the watching.
_OWN_FOLDER = os.path.dirname(interception.__file__)


class detect_anomaly(Watcher):  # noqa: N801 - PyTorch's name
    """A ``with`` block in which operations record the line that called them, and backward passes over them are watched.

    Remote calls that are made in the block are watched too, on the workers that run them.

    Args:
        check_nan: raise when a node computes a nan from gradients without one.

    Raises:
        AutogradError: from the backward pass, when it computes a nan. The message shows the forward line; so does the
            message of any other error of a backward pass over an operation of the block.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

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
            if note_lines(node, "".join(traceback.format_list(self.shown(traceback.extract_stack())))):
                # A hook also where no nan is looked for: the engine shows the line in errors of nodes with hooks.
                node.register_hook(_check_nan(node) if self.check_nan else _change_nothing)
        return result

    def shown(self, stack: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
        """Return the frames of a stack that say something to the author of the program, the innermost last."""
        return [frame for frame in stack if not frame.filename.startswith(_OWN_FOLDER)]


def _check_nan(node: Node) -> Hook:
    known = weakref.ref(node)  # its own hook must not keep it alive

    def check(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> None:
        node = known()
        if node is not None and _has_nan(grad_inputs) and not _has_nan(grad_outputs):
            raise AutogradError(f"{node.name()} made a nan in the backward pass.{forward_line(node)}")

    return check


def _change_nothing(*_: Any) -> None:
    pass


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


def anomaly_mode() -> detect_anomaly | None:
    """Return the anomaly mode of this thread or task; ``None`` if there is none."""
    return next((watcher for watcher in watchers() if isinstance(watcher, detect_anomaly)), None)


def _has_nan(grads: tuple[Any, ...]) -> bool:
    return any(
        grad is not None and grad._array.dtype.kind in "fc" and (grad._array != grad._array).any() for grad in grads
    )
