"""Backward passes of a context on one worker, as an observation shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ..core.extend import Node, progress_of
from ..rpc.extend import MOST_CHARACTERS, MOST_ROWS, ObservedEdge, ObservedNodes, ObservedPass
from .backward_pass import BackwardPass
from .graph import ReceiveNode, SendNode
from .passes import PassId

MOST_OPERATIONS = 50
PASS_ENDED = ("over", "failed")


def observe_passes(parts: Sequence[tuple[PassId, BackwardPass]], name: Callable[[int], str]) -> list[ObservedPass]:
    """Return the passes that go on, and the last one that has ended, in the order in which they began here.

    Args:
        parts: this worker's parts.
        name: returns the name of a worker by its number.
    """
    states = [part.state for _, part in parts]
    ended = [place for place, state in enumerate(states) if state in PASS_ENDED]
    shown = [place for place, state in enumerate(states) if state not in PASS_ENDED or place == ended[-1]]
    return [_observe(*parts[place], states[place], name) for place in shown[:MOST_ROWS]]


def _observe(pass_id: PassId, part: BackwardPass, state: str, name: Callable[[int], str]) -> ObservedPass:
    nodes, running = progress_of(part.part.task)
    return ObservedPass(
        name(pass_id.root),
        pass_id.number,
        state,
        len(nodes),
        sum(done for _, done in nodes),
        running.name()[:MOST_CHARACTERS] if running is not None else "",
        part.failure[:MOST_CHARACTERS],
        _operations(nodes),
        _edges(nodes, part.part.task.unfed(), name),
    )


def _operations(nodes: Iterable[tuple[Node, bool]]) -> list[ObservedNodes]:
    counts: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for node, has_run in nodes:
        name = node.name()[:MOST_CHARACTERS]
        counts[name] += 1
        done[name] += has_run
    order = sorted(counts, key=lambda name: (done[name] - counts[name], name))
    return [ObservedNodes(name, counts[name], done[name]) for name in order[:MOST_OPERATIONS]]


def _edges(nodes: Iterable[tuple[Node, bool]], unfed: Iterable[Node], name: Callable[[int], str]) -> list[ObservedEdge]:
    """Return the messages to and from each other worker, and how many gradients have come and gone."""
    counts: dict[int, Counter[str]] = {}
    waiting = set(unfed)
    for node, has_run in nodes:
        if isinstance(node, SendNode):
            counts.setdefault(node.receiver, Counter()).update(sent=1, fed=int(node not in waiting))
        elif isinstance(node, ReceiveNode):
            counts.setdefault(node.sender, Counter()).update(received=1, given=int(has_run))
    return [ObservedEdge(name(worker), **counts[worker]) for worker in sorted(counts)[:MOST_ROWS]]
