"""``PassAcross``: a backward pass over several workers in a program.

It does what the distributed pass has done. It runs all nodes that are ready. Gradients that are complete by then go to their
workers, in one message to each. Then it takes an answer, runs what that makes ready, and so on. Answers are taken in the
order in which they came in the recorded pass, so sums have the same order in each replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core.extend import Array, GraphTask, Node, Tensor
from .errors import Unrecordable
from .hops import Hop, arrived
from .stand_in import StandIn
from .values import Value
from .verification import same

if TYPE_CHECKING:
    from .program import Program

Arrived = Sequence["Array | None"]  # gradients of what a call has sent


class Message(Protocol):
    """Message with gradients of the results of some calls of one worker."""

    def send(self, replay: Any, *gradients: Any) -> Any:
        """Send them; return what ``take`` gets."""
        ...

    def take(self, pending: Any) -> Any:
        """Return an object whose ``arrays`` are the gradients of what these calls have sent, one call after the other."""
        ...


class _Frame:
    """Message in a program.

    Args:
        message: the message.
        hops: the calls.
        pending: the value of what ``send`` returns.
    """

    def __init__(self, message: Message, hops: Sequence[Hop], pending: Value) -> None:
        self.message, self.hops, self.pending = message, hops, pending
        self.gradients: dict[Hop, Sequence[Any]] | None = None  # when it was taken


class PassAcross:
    """A pass as statements: of a step whose pass has run and keeps its graph, or of a function that another worker calls.

    Args:
        program: gets the statements.
        replay: the value of what a replay is known by.
        hops: the calls of other workers.
        make_message: makes a message with the gradients of the results of some of them.
        large: bytes of gradients that are sent while other nodes are ready to run.
        arrivals: what came in a recorded pass, in order: calls, and gradients of what they have sent.
    """

    def __init__(
        self,
        program: Program,
        replay: Value,
        hops: Sequence[Hop],
        make_message: Callable[[Sequence[Hop]], Message],
        large: int,
        arrivals: Sequence[Sequence[tuple[Hop, Arrived]]],
    ) -> None:
        self._program, self._replay, self._hops, self._make = program, replay, hops, make_message
        self._large, self._arrivals = large, arrivals
        self._found: list[tuple[Tensor, Any]] = []
        self._task = GraphTask(sink=self._deliver, keep_graph=False)
        self._complete: dict[object, list[Hop]] = {}  # by worker, those whose gradients were not sent yet
        self._frames: dict[Hop, _Frame] = {}
        self._arrived: dict[Hop, Arrived] = {hop: gradients for batch in arrivals for hop, gradients in batch}

    def run_step(
        self, roots: Sequence[Tensor], expected: Callable[[Sequence[Tensor]], Sequence[Any]]
    ) -> list[tuple[Tensor, Any]]:
        """Write the pass of a step; return leaves of this worker with their gradients.

        Args:
            roots: where it started: scalars.
            expected: returns the gradients of leaves in the recorded pass.

        Raises:
            Unrecordable: it leads to a graph from outside, or not to all calls, or the gradients are others.
        """
        task = self._task
        feeds = self._program.feeds(list(roots), [None] * len(roots))
        task.expect(*feeds, *self.roots)
        for root, feed in feeds.items():
            task.feed(root, feed)
        self.run(task)
        self._check(expected)
        return [(leaf, _as_value(gradient)) for leaf, gradient in self._found]

    @property
    def roots(self) -> list[Node]:
        """Nodes where gradients arrive from other workers."""
        return [each.arriving for each in self._hops if each.arriving is not None]

    def run(self, task: GraphTask) -> None:
        """Write a pass.

        Args:
            task: the pass. It expects ``roots`` beside its own, and these were fed.

        Raises:
            Unrecordable: it does not lead to all calls.
        """
        self._task = task
        for hop in self._hops:
            hop.leaving.gather = partial(self._gather, hop)
        self._go_on()
        for batch in self._arrivals:
            for hop, _ in batch:
                self._feed(hop)
            self._go_on()
        for frame in dict.fromkeys(self._frames.values()):
            self._take(frame)
        for hop in self._hops:
            hop.leaving.gather = None
        if len(self._frames) < len(self._hops):
            raise Unrecordable("no gradient leads to the call of another worker")

    def _deliver(self, leaf: Tensor, gradient: Any) -> None:
        self._found.append((self._program.shadows.leaf(leaf), gradient))

    def _gather(self, hop: Hop) -> None:
        self._complete.setdefault(hop.to, []).append(hop)
        size = sum(getattr(each, "nbytes", 0) for each in hop.leaving.gradients or ())
        if size >= self._large and self._task.has_ready:
            self._send()

    def _go_on(self) -> None:
        self._task.run()
        self._send()

    def _send(self) -> None:
        """Write that all gradients leave that are complete."""
        complete, self._complete = self._complete, {}
        tracer = self._program.tracer
        for hops in complete.values():
            pending, message = tracer.value(storages=frozenset()), self._make(hops)
            gradients = [each for hop in hops for each in hop.leaving.gradients or ()]
            tracer.effect(message.send, (self._replay, *gradients), pending, changes=True, leaves=True)
            self._frames.update(dict.fromkeys(hops, _Frame(message, hops, pending)))

    def _take(self, frame: _Frame) -> dict[Hop, Sequence[Any]]:
        """Write that the answer to a message is taken, if it was not; return the gradients in it."""
        if frame.gradients is None:
            tracer = self._program.tracer
            made = tracer.value(storages=frozenset())
            tracer.effect(frame.message.take, (frame.pending,), made, changes=True)
            frame.gradients, place = {}, 0
            for hop in frame.hops:
                given = self._arrived.get(hop, ())
                frame.gradients[hop] = [
                    None if each is None else arrived(self._program, made, place + slot, each)
                    for slot, each in enumerate(given)
                ]
                place += len(given)
        return frame.gradients

    def _feed(self, hop: Hop) -> None:
        if hop not in self._frames or hop.arriving is None:
            raise Unrecordable("gradients come back from another worker in another order than its calls allow")
        self._task.feed(hop.arriving, self._take(self._frames[hop])[hop])

    def _check(self, expected: Callable[[Sequence[Tensor]], Sequence[Any]]) -> None:
        for (_, gradient), real in zip(self._found, expected([leaf for leaf, _ in self._found])):
            if not same(gradient, real):
                raise Unrecordable("the recorded gradients are not those of the distributed backward pass")


def _as_value(gradient: Any) -> Any:
    return gradient._value if type(gradient) is StandIn else np.asarray(gradient)
