"""Calls of other workers in a program: a statement that sends arrays and gets some, and one that does so with gradients.

The graph of the recording is cut there. Gradients of what arrived leave at ``Leaving``; those of what was sent arrive at
``Arriving``, which is a root of its own. A pass runs all that is ready before it waits for another worker, as a distributed
backward does: so sums of gradients have the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.extend import Array, GraphTask, Node, Tensor, gradient_edge
from .errors import Unrecordable
from .stand_in import StandIn
from .values import Value
from .verification import same

if TYPE_CHECKING:
    from .program import Program


class Leaving(Node):
    """Node of the tensors that arrived from another worker.

    Attributes:
        gradients: of these, from the pass.
    """

    __slots__ = ("gradients",)

    def __init__(self, tensors: int) -> None:
        super().__init__((), tensors)
        self.gradients: tuple[Any, ...] | None = None

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Keep the gradients."""
        self.gradients = grads
        return ()


class Arriving(Node):
    """Node of the tensors that were sent to another worker."""

    __slots__ = ()

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Return the gradients."""
        return grads


class Hop:
    """A call of another worker in a program.

    Args:
        program: gets the statements.
        forward: gets the arrays of ``sent``; it returns an object whose ``arrays`` are those of the results.
        sent: tensors among the arguments.
        results: tensors that the call returned.

    Raises:
        Unrecordable: the program has changed something before: then a replay could not be given up at the call.
    """

    def __init__(
        self, program: Program, forward: Callable[..., Any], sent: Sequence[Tensor], results: Sequence[Tensor]
    ) -> None:
        tracer = self._tracer = program.tracer
        if any(statement.changes for statement in tracer.statements):
            raise Unrecordable(
                "it changes something (running statistics, random numbers) before it calls another worker"
            )
        given = [program.value(tensor) for tensor in sent]
        uses = frozenset[int]().union(*(each.storages for each in given))
        self._made = tracer.value(storages=frozenset())
        tracer.effect(forward, tuple(given), self._made, uses)
        marked = [each for each in results if each._requires_grad]
        self._leaving = Leaving(len(marked))
        for place, result in enumerate(results):
            stand_in = _arrived(program, self._made, place, result._array)
            slot = next((slot for slot, each in enumerate(marked) if each is result), None)
            edge = None if slot is None else (self._leaving, slot)
            program.shadows(result, Tensor(stand_in, result._requires_grad, edge))
        edges = tuple([gradient_edge(program.shadow(each)) for each in sent if each._requires_grad])
        self.arriving = Arriving(edges, len(edges)) if edges else None
        self._program = program

    def cross(self, backward: Callable[..., Any], arrived: Sequence[Array | None]) -> tuple[Value, list[Any]]:
        """Write the call that sends gradients and gets some; return the value of what it returns, and these gradients.

        Args:
            backward: gets what ``forward`` returned, and the gradients of the results; it returns an object with ``arrays``.
            arrived: the gradients that came in the recorded call.

        Raises:
            Unrecordable: no gradient leads there.
        """
        if self._leaving.gradients is None:
            raise Unrecordable("no gradient leads to the call of another worker")
        made = self._tracer.value(storages=frozenset())
        self._tracer.effect(backward, (self._made, *self._leaving.gradients), made, changes=True)
        places = [
            None if each is None else _arrived(self._program, made, place, each) for place, each in enumerate(arrived)
        ]
        return made, places


def differentiate_across(
    program: Program,
    roots: Sequence[Tensor],
    hop: Hop,
    backward: Callable[..., Any],
    arrived: Sequence[Array | None],
    expected: Callable[[Sequence[Tensor]], Sequence[Any]],
) -> tuple[Value, list[tuple[Tensor, Any]]]:
    """Write a distributed backward pass that has run, and keeps its graph.

    Args:
        program: gets the statements.
        roots: where it started: scalars.
        hop, backward, arrived: see ``Hop.cross``.
        expected: returns the gradients that arrived at leaves.

    Returns:
        The value of what ``backward`` returns, and leaves of this worker with their gradients.

    Raises:
        Unrecordable: it leads to a graph from outside, or the gradients are others.
    """
    found: list[tuple[Tensor, Any]] = []

    def deliver(leaf: Tensor, gradient: Any) -> None:
        found.append((program.leaf(leaf), gradient))

    task = GraphTask(sink=deliver, keep_graph=False)
    feeds = program.feeds(list(roots), [None] * len(roots))
    sends = [] if hop.arriving is None else [hop.arriving]
    task.expect(*feeds, *sends)
    for root, feed in feeds.items():
        task.feed(root, feed)
    task.run()
    made, gradients = hop.cross(backward, arrived)
    for node in sends:
        task.feed(node, gradients)
        task.run()
    for (_, gradient), real in zip(found, expected([leaf for leaf, _ in found])):
        if not same(gradient, real):
            raise Unrecordable("the recorded gradients are not those of the distributed backward pass")
    return made, [(leaf, _as_value(gradient)) for leaf, gradient in found]


def _arrived(program: Program, made: Value, place: int, array: Array) -> StandIn:
    """Write that an array is taken from what another worker returned."""
    tracer = program.tracer
    value = tracer.value(array)
    tracer.outer |= value.storages
    tracer.effect(arrived_at, (made, place), value)
    return StandIn(tracer, value, array)


def _as_value(gradient: Any) -> Any:
    return gradient._value if type(gradient) is StandIn else np.asarray(gradient)


def arrived_at(made: Any, place: int) -> Any:
    """Return one of the arrays that came from another worker."""
    return made.arrays[place]
