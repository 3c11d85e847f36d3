"""``Program``: what a recorded call does, as statements.

Each operation is repeated on stand-ins. What comes of it is compared with what the operation returned, bit by bit. If that
differs, or if the operation looks at elements, the operation becomes one statement: it runs as it is in each replay. Backward
passes run over the graph of the repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.errors import AutogradError
from ..core import set_grad_enabled
from ..core.extend import (
    BorrowedGradient,
    Edge,
    Generator,
    GraphTask,
    Node,
    Tensor,
    accumulate_grad,
    gradient_edge,
    is_grad_enabled,
)
from .comparison import check_alike
from .constants import constant, is_constant
from .crossings import Across
from .elements import operation_by_elements
from .errors import Unrecordable
from .gradients import Gradients, read_gradient
from .looks import Reader, look_at, number_of
from .mirrors import mirrored
from .names import Names
from .operation import Operation
from .rows import check_traced, trace_rows
from .shadows import Shadows
from .stand_in import StandIn
from .steps import Steps
from .trees import tensors_of
from .values import Backward, Outer, Value, mapped
from .verification import Ends, check_gradients, same


class Program:
    """The statements of one recorded call.

    Args:
        names: the tensors of the call.
        gradients: the gradients that it reads.

    Attributes:
        shadows: the tensors over stand-ins.
        tracer: has the statements.
        whole: names of the operations that run as a whole, with the reasons.
        steps: the operations.
        numbers: the values of numbers that are read.
    """

    def __init__(self, names: Names, gradients: Gradients) -> None:
        self.shadows = shadows = Shadows(names)
        self.tracer = shadows.tracer
        self._grads = gradients
        self.steps = Steps()
        self.numbers: list[Value] = []
        self.whole: list[tuple[str, str]] = []
        self._names = names
        self._nodes: set[Node] = set()
        self._made = self.tracer.value(storages=frozenset())  # what the last effect returns
        self._gradients: list[tuple[Tensor, Any]] = []  # of the backward pass that runs

    # -- operations

    def add(self, operation: Operation) -> None:
        """Add an operation that has run.

        Raises:
            Unrecordable: it has changed memory in a way that cannot be repeated.
        """
        self.steps.add(operation)
        mark, ends = self.tracer.mark(), self._ends(operation)
        try:
            repeated = self._repeat(operation, ends)
        except Exception as error:  # a kernel may do anything with what is no array
            self.tracer.back(mark)
            self.whole.append((operation.name, str(error)))
            self._run_whole(operation, ends)
            return
        for real, other in zip(operation.outputs(), repeated):
            if self.shadows.keep(real, other) is not other:
                raise Unrecordable(f"{operation.name}() returns one of its arguments, and not always the same")

    def _repeat(self, operation: Operation, ends: Ends) -> list[Tensor]:
        if operation.drew or any(isinstance(each, Generator) for each in operation.kwargs.values()):
            raise Unrecordable("it draws random numbers")
        if operation.name.endswith("_") and any(id(each) in self._names.outside for each in operation.written):
            raise Unrecordable("it writes to a tensor from outside")
        if is_constant(operation.function, operation.tensors, operation.result):
            return [Tensor(constant(self.tracer, operation.result._array))]
        noted = self.tracer.noted = []
        args, kwargs = mapped((operation.args, operation.kwargs), self.shadows.of_any)
        result = operation.function(*args, **kwargs)
        outside = [self.shadows.argument(each) for each in operation.written if id(each) in self._names.outside]
        if sorted(map(_place, outside)) != sorted(set(map(_place, noted))):
            raise Unrecordable("it writes to a tensor from outside")
        check_alike(operation.result, result)
        written = operation.outputs()[len(tensors_of(result)) :]
        repeated = tensors_of(result) + [self.shadows.of(each) for each in written]
        check_alike(operation.outputs(), repeated)
        check_gradients(self.tracer, operation.outputs(), repeated, ends)
        trace_rows(self.tracer, repeated, self._nodes)
        return repeated

    def _ends(self, operation: Operation) -> dict[tuple[int, int], Edge | None]:
        """Return the edges of the recorded graph for those of the inputs, by (id of the node, slot)."""
        return {
            (id(edge[0]), edge[1]): gradient_edge(self.shadows.of(tensor))
            for tensor, edge in zip(operation.tensors, operation.edges)
            if edge is not None
        }

    def _run_whole(self, operation: Operation, ends: Ends) -> None:
        tracer, outputs = self.tracer, tensors_of(operation.result)
        if operation_by_elements(operation.name, operation.tensors):
            tracer.dynamic = f"{operation.name}()"
        tracer.changed += [each._array for each in operation.written]
        if not all(id(each) in self._names.outside and each._edge is None for each in operation.written):
            raise Unrecordable(f"{operation.name}() changes a tensor in place")
        uses: frozenset[int] = frozenset()
        for tensor in operation.tensors:
            uses |= self.shadows.value(tensor).storages
        made = tracer.value(storages=frozenset())
        args, kwargs = mapped((operation.args, operation.kwargs), self.shadows.argument)
        given = operation.function, is_grad_enabled(), args, kwargs
        written = bool(operation.written)
        tracer.effect(
            call_whole, given, made, uses, changes=operation.drew or written, draws=operation.drew and not written
        )
        if any(output is tensor for output in outputs for tensor in operation.tensors):
            if len(outputs) > 1 or id(outputs[0]) not in self._names.outside:
                raise Unrecordable(f"{operation.name}() returns one of its arguments")
            return
        arrays = []
        for place, output in enumerate(outputs):
            value = tracer.value(output._array)
            tracer.outer |= value.storages
            value.storages |= uses
            tracer.effect(array_at, (made, place), value, uses, checked=True)
            arrays.append(value)
            uses |= value.storages
        for output, value, edge in zip(outputs, arrays, mirrored(tracer, outputs, made, ends, uses)):
            stand_in = StandIn(tracer, value, output._array)
            self.shadows.put(output, Tensor(stand_in, output._requires_grad, edge))

    # -- effects

    def effect(self, function: Callable[..., Any], args: Any) -> None:
        """Add a call, in ``no_grad()``, that changes something of tensors from outside and returns a tensor or nothing."""
        self._made = self.tracer.value(storages=frozenset())
        given = mapped(args, self.shadows.argument)
        self.tracer.effect(call_whole, (function, False, given, {}), self._made, changes=True)

    def effect_returned(self, result: Tensor) -> None:
        """Add that the last effect has returned a tensor."""
        value = self.tracer.value(result._array)
        self.tracer.outer |= value.storages
        self.tracer.effect(array_at, (self._made, 0), value)
        self.shadows.put(result, Tensor(StandIn(self.tracer, value, result._array)))

    def gradient(self, leaf: Tensor, gradient: Tensor) -> None:
        """Add that a gradient of a tensor from outside is read.

        The program may write to it, as no other array from outside: so its stand-in has an example of its own.
        """
        made = self.tracer.value(storages=frozenset())
        self.tracer.effect(read_gradient, (self.shadows.argument(leaf),), made)
        example = gradient._array.copy("K")
        value = self.tracer.value(example)
        self.tracer.effect(array_at, (made, 0), value)
        self.shadows.put(gradient, self.shadows.over(StandIn(self.tracer, value, example), gradient))

    def look_again(self, gradient: Tensor) -> None:
        """Let the stand-in of a gradient have its present elements."""
        if (shadow := self.shadows.find(gradient)) is not None:
            stand_in: Any = shadow._array
            if stand_in._example is not gradient._array:
                np.copyto(stand_in._example, gradient._array)

    def number(self, tensor: Tensor) -> None:
        """Add that the only element of a tensor is read."""
        self.numbers.append(self.tracer.value(storages=frozenset()))
        self.tracer.effect(number_in, (self.shadows.value(tensor),), self.numbers[-1])

    def look(self, tensor: Tensor, reader: Reader) -> None:
        """Add that Python looks at elements of a tensor: a replay with other values is given up."""
        seen = self.tracer.value(storages=frozenset())
        self.tracer.effect(look_at, (reader, self.shadows.value(tensor)), seen)

    def add_number(self, operation: Operation) -> None:
        """Add an operation that has returned a number, which Python may look at."""
        tracer = self.tracer
        mark = tracer.mark()
        try:
            truth = self._asked(operation)
            tracer.effect(look_at, (bool, truth), tracer.value(storages=frozenset()))
            return
        except Exception as error:
            tracer.back(mark)
            self.whole.append((operation.name, str(error)))
        uses = frozenset[int]().union(*(self.shadows.value(tensor).storages for tensor in operation.tensors))
        made, seen = tracer.value(storages=frozenset()), tracer.value(storages=frozenset())
        args, kwargs = mapped((operation.args, operation.kwargs), self.shadows.argument)
        tracer.effect(call_whole, (operation.function, is_grad_enabled(), args, kwargs), made, uses)
        tracer.effect(look_at, (number_of, made), seen)

    def _asked(self, operation: Operation) -> StandIn:
        """Repeat an operation that asks for one truth and returns it, and return the stand-in that it asks."""
        asked = self.tracer.asked = []
        try:
            args, kwargs = mapped((operation.args, operation.kwargs), self.shadows.of_any)
            result = operation.function(*args, **kwargs)
        finally:
            self.tracer.asked = None
        if result is not operation.result or [bool(each._example) for each in asked] != [result]:
            raise Unrecordable("it looks at elements")
        return asked[0]

    # -- backward passes

    def backward(self, outputs: list[Tensor], gradients: list[Tensor | None], keep: bool) -> None:
        """Add a backward pass that is about to begin.

        Args:
            outputs: where it starts.
            gradients: their gradients; ``None`` for 1.
            keep: whether the graph can be used again.

        Raises:
            Unrecordable: it leads to a graph from outside, or starts in an unusual way.
        """
        self.tracer.keep = keep
        task = GraphTask(sink=self._deliver, keep_graph=keep)
        feeds = self.feeds(outputs, gradients)
        task.expect(*feeds)
        for root, feed in feeds.items():
            task.feed(root, feed)
        task.run()

    def feeds(self, outputs: list[Tensor], gradients: list[Tensor | None]) -> dict[Node, list[Any]]:
        """Return by node the gradients with which a pass begins. Arguments and errors: those of ``backward``."""
        feeds: dict[Node, list[Any]] = {}
        for output, gradient in zip(outputs, gradients):
            shadow = self.shadows.of(output)
            edge = gradient_edge(shadow)
            if edge is None:
                raise Unrecordable("backward() starts from a tensor that requires no grad")
            feed = feeds.setdefault(edge[0], [None] * edge[0].num_inputs)
            if feed[edge[1]] is not None:
                raise Unrecordable("backward() starts twice from one tensor")
            feed[edge[1]] = root_gradient(shadow, None if gradient is None else self.shadows.of(gradient))
        check_traced(feeds, self._nodes)
        return feeds

    def _deliver(self, leaf: Tensor, gradient: Any) -> None:
        real = self.shadows.leaf(leaf)
        first = self._grads.arrive(real)
        self.tracer.effect(
            accumulate_grad, (self.shadows.argument(real), gradient), escapes=True, changes=True, moves=first
        )
        if real._grad is None:
            self._gradients.append((real, gradient))

    def check_gradients(self) -> None:
        """Check at the end of a backward pass that it gave the recorded gradients.

        Raises:
            Unrecordable: they differ.
        """
        gradients, self._gradients = self._gradients, []
        for leaf, gradient in gradients:
            arrived = leaf._grad
            if isinstance(arrived, BorrowedGradient) and not same(gradient, arrived._array):
                raise Unrecordable("the recorded gradients are not those of the backward pass")

    def differentiate(self, outputs: Sequence[Tensor | None], across: Across | None = None) -> Backward | None:
        """Write the backward pass of results behind the program.

        Args:
            outputs: results that require grad; ``None`` in the places of those without a gradient.
            across: leads it to other workers; ``None`` if the program calls none.

        Returns:
            The pass; ``None`` if the graph was freed, or needs values that were changed in place.
        """
        mark = self.tracer.mark()
        given: list[Value] = []
        feeds: dict[Node, list[Any]] = {}
        for output in outputs:
            if output is not None:
                gradient = self.tracer.outside(np.ones_like(output._array))
                given.append(gradient._value)
                edge = self.shadows.of(output)._edge
                assert edge is not None
                feed = feeds.setdefault(edge[0], [None] * edge[0].num_inputs)
                feed[edge[1]] = gradient if feed[edge[1]] is None else feed[edge[1]] + gradient
        inputs: list[Tensor] = []
        gradients: list[Any] = []

        def deliver(leaf: Tensor, arrived: Any) -> None:
            inputs.append(self.shadows.real(leaf))
            gradients.append(arrived)

        self.tracer.keep = True
        task = GraphTask(sink=deliver, keep_graph=True)
        check_traced(feeds, self._nodes)
        task.expect(*feeds, *(across.roots if across is not None else ()))
        leaves = [(each, gradient_edge(shadow)) for shadow, each in self.shadows.outside() if shadow._requires_grad]
        sums = [each for each, edge in leaves if edge is not None and task.awaited(edge[0]) > 1]
        for root, feed in feeds.items():
            task.feed(root, feed)
        try:
            task.run() if across is None else across.run(task)
        except AutogradError:  # a backward pass inside has freed the graph, or the call has changed what it needs
            self.tracer.back(mark)
            return None
        mask = tuple([output is not None for output in outputs])
        values = [each._value if type(each) is StandIn else each for each in gradients]
        return Backward(mask, mark, given, inputs, values, sums)


def root_gradient(output: Tensor, gradient: Tensor | None) -> Any:
    """Return the gradient that a backward pass starts with."""
    if gradient is None:
        if output._array.size != 1:
            raise Unrecordable("backward() needs a gradient")
        return np.ones(output._array.shape, output._array.dtype)
    return gradient._array.astype(output._array.dtype)


def _place(outer: Outer) -> tuple[int, bool]:
    return outer.place, outer.found


def call_whole(function: Callable[..., Any], grad: bool, args: Any, kwargs: Any) -> Any:
    """Call an operation in a replay, in the grad mode of its recording."""
    with set_grad_enabled(grad):
        return function(*args, **kwargs)


def number_in(array: Any) -> Any:
    """Return the only element of an array."""
    return array.item()


def array_at(result: Any, place: int) -> Any:
    """Return the array of one of the tensors that an operation returned."""
    return tensors_of(result)[place]._array
