"""Lines of the forward pass that called a node's operation, which anomaly mode notes, and errors that show them."""

from __future__ import annotations

from ...base.errors import AutogradError
from .node import Node

_LINES = object()


def note_lines(node: Node, lines: str) -> bool:
    """Note the lines that called a node's operation; return False if they were noted before."""
    return node.metadata.setdefault(_LINES, lines) is lines


def forward_line(node: Node) -> str:
    """Return the lines that called a node's operation, as text."""
    return f" Its forward call:\n{node.metadata[_LINES]}"


def show_forward_line(node: Node, error: Exception) -> None:
    """Add the lines to an error of a node in the backward pass, if anomaly mode has noted them.

    They go to the end of the error's message, also on its way to another worker. An error that has no text of its own gets an
    ``AutogradError`` with them as its cause.
    """
    if node._metadata is None or _LINES not in node._metadata or node._metadata[_LINES] in str(error):
        return
    text = f"{node.name()} failed in the backward pass.{forward_line(node)}"
    if error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{text}", *error.args[1:])
    elif error.__cause__ is None:
        error.__cause__ = AutogradError(text)
