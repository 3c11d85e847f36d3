"""Anomaly mode: an error of a backward pass, or a nan in it, is shown with the line of the forward pass that caused it."""

from __future__ import annotations

import os
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ...base.errors import AutogradError
from .. import interception
from ..interception import Watcher, entered, watch_everywhere, watchers
from .forward_lines import forward_line, note_lines
from .hooks import Hook
from .node import Node
from .saved_hooks import new_nodes

# Frames of these files are left out of the shown lines: they belong to the operations and to the watching.
_OWN_FOLDER = os.path.dirname(interception.__file__)


class detect_anomaly(Watcher):  # noqa: N801 - PyTorch's name
    """A ``with`` block in which operations record the line that called them, and backward passes over them are watched.

    It is in effect in the whole process, as in PyTorch: also in other threads, and in those that serve remote calls. Remote
    calls that are made meanwhile are watched too, on the workers that run them.

    Args:
        check_nan: raise when a node computes a nan from gradients without one.

    Raises:
        AutogradError: from the backward pass, when it computes a nan. The message shows the forward line; so does the
            message of any other error of a backward pass over an operation of the block.
    """

    mode = True

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

    def __enter__(self) -> Any:
        with _change():
            _settings.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with _change():
            if self in _settings:  # another call of set_detect_anomaly may have taken its place
                _settings.remove(self)

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
    """Turns anomaly mode on or off in the process, until it is called again or for a ``with`` block.

    Args:
        mode: whether to turn it on.
        check_nan: raise when a node computes a nan from gradients without one.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self.mode = mode
        self._in_block = False
        with _change():
            # Of the calls before this one that began no block, the last is in effect again if this one begins one.
            forgotten = [each for each in _settings if isinstance(each, set_detect_anomaly) and not each._in_block][:-1]
            _settings[:] = [each for each in _settings if each not in forgotten] + [self]

    def __enter__(self) -> Any:
        self._in_block = True
        return self


# Of the process, as in PyTorch: the blocks that threads are in, and calls of ``set_detect_anomaly``. The last one decides.
_settings: list[detect_anomaly] = []
_lock = threading.Lock()


@contextmanager
def _change() -> Iterator[None]:
    """Change ``_settings`` in this block."""
    with _lock:
        yield
        watch_everywhere(*(each for each in _settings[-1:] if each.mode))


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on, in this process or for the remote call that this thread or task runs."""
    return anomaly_mode() is not None


def anomaly_mode() -> detect_anomaly | None:
    """Return the anomaly mode of this thread or task; ``None`` if there is none."""
    if not entered:
        return None
    for watcher in reversed(watchers()):
        if isinstance(watcher, detect_anomaly):
            return watcher
    return None


def _has_nan(grads: tuple[Any, ...]) -> bool:
    return any(
        grad is not None and grad._array.dtype.kind in "fc" and (grad._array != grad._array).any() for grad in grads
    )
