"""Calls of other workers in a program: a statement that sends arrays, and one that takes some.

The graph of the recording is cut there. Gradients of what arrived leave at ``Leaving``; those of what was sent arrive at
``Arriving``, which is a root of its own (``passes_across.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.extend import Array, Node, Tensor, gradient_edge
from .errors import Unrecordable
from .stand_in import StandIn
from .values import Value

if TYPE_CHECKING:
    from .program import Program


class Leaving(Node):
    """Node of the tensors that arrived from another worker.

    Attributes:
        gradients: of these, from the pass.
        gather: called when they are complete, if there is one.
    """

    __slots__ = ("gather", "gradients")

    def __init__(self, tensors: int) -> None:
        super().__init__((), tensors)
        self.gradients: tuple[Any, ...] | None = None
        self.gather: Callable[[], object] | None = None

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Keep the gradients."""
        self.gradients = grads
        if self.gather is not None:
            self.gather()
        return ()


class Arriving(Node):
    """Node of the tensors that were sent to another worker."""

    __slots__ = ()

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Return the gradients."""
        return grads


class Hop:
    """A call of another worker in a program; as it is made, the statement that sends.

    Args:
        program: gets the statements.
        to: names the worker.
        send: gets ``replay`` and the arrays of ``sent``; it returns what ``take`` of ``arrive`` gets.
        replay: the value of what this replay is known by.
        sent: tensors among the arguments.

    Attributes:
        arriving: where gradients of ``sent`` arrive; ``None`` if there are none.
        leaving: where gradients of the results leave, after ``arrive``.
    """

    def __init__(
        self, program: Program, to: object, send: Callable[..., Any], replay: Value, sent: Sequence[Tensor]
    ) -> None:
        self._program, self.to = program, to
        given = [program.shadows.value(tensor) for tensor in sent]
        uses = frozenset[int]().union(*(each.storages for each in given))
        self._pending = program.tracer.value(storages=frozenset())
        program.tracer.effect(send, (replay, *given), self._pending, uses, leaves=True)
        edges = tuple([gradient_edge(program.shadows.of(each)) for each in sent if each._requires_grad])
        self.arriving = Arriving(edges, len(edges)) if edges else None
        self.leaving = Leaving(0)

    def arrive(self, take: Callable[..., Any], results: Sequence[Tensor]) -> None:
        """Write the statement that takes the results.

        Args:
            take: returns an object whose ``arrays`` are those of the results.
            results: tensors that the call returned.

        Raises:
            Unrecordable: the program has changed something before that is not put back when a replay is given up at the call.
        """
        program, tracer = self._program, self._program.tracer
        if any(statement.changes and not statement.draws for statement in tracer.statements):
            raise Unrecordable("it changes something (running statistics, say) before it calls another worker")
        made = tracer.value(storages=frozenset())
        tracer.effect(take, (self._pending,), made)
        marked = [each for each in results if each._requires_grad]
        self.leaving = Leaving(len(marked))
        for place, result in enumerate(results):
            stand_in = arrived(program, made, place, result._array)
            slot = next((slot for slot, each in enumerate(marked) if each is result), None)
            edge = None if slot is None else (self.leaving, slot)
            program.shadows.put(result, Tensor(stand_in, result._requires_grad, edge))


def arrived(program: Program, made: Value, place: int, array: Array) -> StandIn:
    """Write that an array is taken from what another worker returned.

    Args:
        program: gets the statement.
        made: the value of what was returned.
        place: of the array there.
        array: as it was in the recording.
    """
    tracer = program.tracer
    value = tracer.value(array)
    tracer.outer |= value.storages
    tracer.effect(arrived_at, (made, place), value)
    return StandIn(tracer, value, array)


def arrived_at(made: Any, place: int) -> Any:
    """Return one of the arrays that came from another worker."""
    return made.arrays[place]
