"""Progress of a backward pass, for observers: which of its nodes have run, and which one runs now."""

from __future__ import annotations

from typing import NamedTuple

from ...base.thread_frames import thread_frames
from .engine import LEFT, NODE, GraphTask
from .node import Node

TASK_CODE = GraphTask._run_ready.__code__
MOST_FRAMES_ABOVE = 200  # the hooks and nodes that run call other functions


class Progress(NamedTuple):
    """Progress of a pass.

    Attributes:
        nodes: the nodes that it has reached, each with whether it has run.
        running: the node that runs; None if none does, or the pass has just gone on.
    """

    nodes: list[tuple[Node, bool]]
    running: Node | None


def progress_of(task: GraphTask) -> Progress:
    """Return the progress of a pass. It may run meanwhile: it is not stopped for that, and each node is seen a little later.

    Args:
        task: the pass.
    """
    entries = list(task._pending.values())
    running = running_node(task) if task._running else None
    waiting = {id(entry) for entry in list(task._ready)}
    nodes = [
        (entry[NODE], not entry[LEFT] and entry[NODE] is not running and id(entry) not in waiting) for entry in entries
    ]
    return Progress(nodes, running)


def running_node(task: GraphTask) -> Node | None:
    """Return the node that a thread runs for a pass; None if none does."""
    for frame in thread_frames().values():
        for _ in range(MOST_FRAMES_ABOVE):
            if frame.f_code is TASK_CODE and (found := frame.f_locals).get("self") is task:
                return found.get("node")
            if frame.f_back is None:
                break
            frame = frame.f_back
    return None
