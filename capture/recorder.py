"""``Recorder``: what one eager call does, as a list of events, and as a program if that is wanted.

It sees each operation that the function calls (as a ``Watcher``), and the calls of the library beside operations that matter
(``calls.py``): backward passes, steps of optimizers, reads of elements. Two calls whose events are equal did the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from ..core.extend import Generator, Tensor, Watcher, is_grad_enabled
from .catching import catches
from .crossings import Crossing, RemotePart
from .errors import Unrecordable
from .gradients import Gradients, assign_gradient, clear_gradient
from .lines import Place, line_in, place_in, user_line
from .looks import LOOK, Look, Reader, look
from .names import Names
from .operation import Operation
from .program import Program
from .trees import form, keys_of, numbered, tensors_of
from .values import mapped

PACKAGE = __name__.rpartition("capture.")[0]  # with the point


class Recorder(Watcher):
    """Records one call.

    Args:
        given: tensors among the arguments of the call.
        program: whether to write a program, too.
        code: of the function, if it is one of Python.

    Attributes:
        names: the tensors of the call.
        gradients: the gradients that it reads.
        program: the program, or ``None``.
        events: operations and other calls in order, in a form that can be compared.
        lines: of the function, for each event; ``None`` where it is not known.
        reason: why the recording ended; ``None`` while it goes on.
        places: that are the reason.
        inspected: whether the call looked at a graph: with hooks, or by ``autograd.grad``.
        numbers: those that it has read, and can only return.
        looks: at elements that it may use in another way.
        generators: those that random numbers were drawn from.
        depth: above 0 while an operation or another recorded call runs.
        drew: whether random numbers were drawn since it was last set.
        caught: where the function would catch an error of a call; ``None`` if there is no such place.
        crossing: what is known of calls of other workers; ``None`` if there was none.
        parts: those of other workers, after ``finish``.
        earlier: recordings of calls before, with which this one is compared.
    """

    def __init__(self, given: list[Tensor], program: bool, code: CodeType | None = None) -> None:
        self.names = Names(given)
        self.gradients = Gradients()
        self.program = Program(self.names, self.gradients) if program else None
        self.events: list[Any] = []
        self.lines: list[int | None] = []
        self.reason: str | None = None
        self.places: Sequence[Place] = ()
        self.inspected = False
        self._code = code
        self.numbers: list[float] = []
        self.looks: list[Look] = []
        self.generators: list[Generator] = []
        self.depth = 0
        self.drew = False
        self.caught: Place | None = None
        self.crossing: Crossing | None = None
        self.parts: list[RemotePart] = []
        self.earlier: Sequence[Recorder] = ()
        self._alive: list[Any] = []  # tensors are named by their ids
        for tensor in given:
            self.names.name(tensor)

    def watch(
        self, run: Callable[[], Any], func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run an operation and record it; not those that it calls."""
        if self.depth or self.reason is not None:
            return run()
        self.depth += 1
        self.drew = False
        operation = Operation(func, args, kwargs)
        try:
            self._before(operation)
            result = operation.result = run()
            if self.reason is None:
                with _unheard():
                    self._after(operation)
        finally:
            self.depth -= 1
        return result

    def draws(self, generator: Generator) -> None:
        """Note that random numbers are drawn."""
        self.drew = True
        if all(each is not generator for each in self.generators):
            self.generators.append(generator)
        if not self.depth:
            self.stop("random numbers are drawn outside of an operation")

    def check_uncaught(self, frame: FrameType | None) -> None:
        """Raise if the function would catch an error of a call that runs: a replay raises such errors from the function itself.

        Args:
            frame: of the code that calls.

        Raises:
            Unrecordable: it would.
        """
        if catches(frame, self._code, PACKAGE):
            raise Unrecordable("it calls another worker in a try statement; put that around the compiled function")

    @property
    def place(self) -> Place:
        """Place of the call."""
        return place_in(self._code)

    def refuse(self, error: Exception) -> None:
        """End the recording for an error; the call goes on."""
        self.stop(str(error), getattr(error, "places", ()))

    def stop(self, reason: str, places: Sequence[Place] = ()) -> None:
        """End the recording; the call goes on.

        Args:
            reason: why.
            places: that are the reason, if they are others than the one where the call is.
        """
        if self.reason is None:
            self.places = places or [self.place]
            self.reason = f"{reason} ({', '.join(dict.fromkeys(each.text for each in self.places))})"
            self.program = None
            self._alive.clear()

    def _note(self, event: Any) -> None:
        self.events.append(event)
        self.lines.append(line_in(self._code))
        if self.program is not None and self.caught is None and catches(sys._getframe(1), self._code, PACKAGE):
            self.caught = self.place

    def _before(self, operation: Operation) -> None:
        try:
            self.names.check_open(operation.tensors)
            for tensor in operation.tensors:
                self.names.name(tensor)
        except Exception as error:
            self.refuse(error)

    def _after(self, operation: Operation) -> None:
        try:
            if isinstance(owner := getattr(operation.function, "__self__", None), type):
                raise Unrecordable(f"{owner.__name__} is a custom function, whose code may do anything")
            arguments = form((operation.args, operation.kwargs), self.names.name)
            self._note((operation.function, arguments, is_grad_enabled()))
            self._alive.append(operation)
            operation.drew = self.drew
            operation.written = self.names.changed(operation.tensors)  # as batch_norm writes to its running statistics
            if type(operation.result) in (bool, int, float):
                self._returned_number(operation)
                return
            check_results(operation.name, operation.result)
            if self.program is not None:
                self.program.add(operation)
            self.names.made(len(self.events), tensors_of(operation.result))
        except Exception as error:  # of whatever kind: the call itself has not failed
            self.refuse(error)

    def _returned_number(self, operation: Operation) -> None:
        """Record that an operation has looked at elements: ``equal``, say."""
        seen = form(operation.result, self.names.name)
        self.looks.append(Look(operation.name, user_line(), operation.result, seen, line_in(self._code)))
        self._note((LOOK, operation.name, self.looks[-1].line, seen))
        if operation.drew or operation.written:
            raise Unrecordable(f"{operation.name}() returns a number and changes something")
        if self.program is not None:
            self.program.add_number(operation)

    # -- other calls

    def backward(self, outputs: list[Tensor], gradients: list[Tensor | None], keep: bool) -> None:
        """Record a backward pass that is about to begin. Arguments and errors: those of ``Program.backward``.

        Args:
            outputs: where it starts.
            gradients: their gradients.
            keep: whether the graph can be used again.
        """
        self._note(("backward", form((outputs, gradients, keep), self.names.name)))
        if self.program is not None:
            self.program.backward(outputs, gradients, keep)

    def backward_ended(self) -> None:
        """Check what a backward pass did."""
        try:
            if self.program is not None:
                self.program.check_gradients()
        except Unrecordable as error:
            self.refuse(error)
        self.gradients_changed()

    def effect(self, function: Callable[..., Any], owner: Any, *args: Any) -> None:
        """Record a call that changes objects of the program: the step of an optimizer, say.

        Args:
            function: what is called.
            owner: its first argument.
            *args: its others: numbers.
        """
        self._note((function, form((owner, *args), self.names.name)))
        if self.program is not None:
            self.program.tracer.effect(function, (owner, *args), changes=True)

    def outside_effect(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Record a call that changes something of tensors from outside: their gradients, say.

        Args:
            function: what is called, without recording: in ``no_grad()``.
            args: its arguments.

        Raises:
            Unrecordable: one of the tensors is a result.
        """
        self._note((function, form(args, self.names.name)))
        if any(id(each) not in self.names.outside for each in tensors_of(args)):
            raise Unrecordable(f"{function.__name__}() gets a result of an operation")
        self.gradients.touch(*tensors_of(args))
        if self.program is not None:
            self.program.effect(function, args)

    def keep(self, given: Any) -> None:
        """Keep an object alive while the recording lasts: tensors in it have names."""
        self._alive.append(given)

    def returned(self, result: Any) -> None:
        """Name what an effect on tensors from outside has returned: a new tensor, or ``None``."""
        if self.reason is None and isinstance(result, Tensor):
            self._alive.append(result)
            if self.program is not None:
                self.program.effect_returned(result)
            self.names.made(len(self.events), [result])
        self.gradients_changed()

    def clear(self, leaf: Tensor) -> None:
        """Record that the gradient of a tensor is removed.

        Raises:
            Unrecordable: it is not a tensor from outside.
        """
        self._note(("clear", self._leaf(leaf, "assigned")))
        self.gradients.clear(leaf)
        if self.program is not None:
            self.program.tracer.effect(clear_gradient, (self.program.shadows.argument(leaf),), changes=True)

    def assign(self, leaf: Tensor, gradient: Tensor) -> None:
        """Record that a tensor becomes the gradient of another.

        Args:
            leaf: gets the gradient.
            gradient: an argument of the call, or a result of an operation.

        Raises:
            Unrecordable: ``leaf`` is not a tensor from outside, or the gradient has a graph or is a tensor that was found.
        """
        name = self._leaf(leaf, "assigned")
        if gradient._requires_grad or self.names.name(gradient)[0] == "found":
            raise Unrecordable(
                ".grad is assigned a tensor that requires grad, or that is neither an argument nor a result"
            )
        self._note(("assign", name, self.names.name(gradient)))
        self.gradients.assign(leaf)
        if self.program is not None:
            given = self.program.shadows.argument(leaf), self.program.shadows.argument(gradient)
            self.program.tracer.effect(assign_gradient, given, escapes=True, changes=True)
        self.gradients.hold(gradient)

    def read_gradient(self, leaf: Tensor) -> None:
        """Note that a gradient is about to be read.

        Raises:
            Unrecordable: that of a result.
        """
        self._leaf(leaf, "read")
        self.gradients.read(leaf)

    def gradient_read(self, leaf: Tensor, gradient: Tensor | None) -> None:
        """Record that a gradient was read."""
        if self.reason is not None:
            return
        self._note(("gradient", self.names.name(leaf), gradient is None))
        if gradient is None:
            return
        if gradient._requires_grad or gradient.is_sparse:
            self.stop(".grad is read, and is sparse or has a graph")
        elif not self.names.knows(gradient):
            self._alive.append(gradient)
            self.names.made(len(self.events), [gradient])
            if self.program is not None:
                self.program.gradient(leaf, gradient)
        elif self.names.name(gradient)[0] == "found":
            self.stop(".grad is read, and was found elsewhere before")
        if self.reason is None:
            self.gradients.hold(gradient)
            self.gradients_changed()

    def gradients_changed(self) -> None:
        """Note that a recorded call may have changed gradients in place."""
        if self.reason is None:
            for each in self.gradients.held:
                self.names.seen(each)
                if self.program is not None:
                    self.program.look_again(each)

    def _leaf(self, leaf: Tensor, what: str) -> Any:
        """Return the name of a tensor from outside whose gradient is read or assigned."""
        name = self.names.name(leaf)
        if name[0] == "result":
            raise Unrecordable(f".grad of a result is {what}")
        return name

    def number_read(self, tensor: Tensor, number: float) -> None:
        """Record that a number was read of a tensor, which the call can only return."""
        if self.reason is not None:
            return
        self._note(("item", self.names.name(tensor)))
        self.numbers.append(number)
        if self.program is not None:
            self.program.number(tensor)

    def looked(self, tensor: Tensor, reader: Reader, name: str, value: Any) -> None:
        """Record that a value was read of a tensor, which the call may use."""
        if self.reason is not None:
            return
        try:
            found = look(reader, name.strip("_"), user_line(), tensor._array, value)
            self.looks.append(found._replace(at=line_in(self._code)))
            self._note((LOOK, found.name, found.line, self.names.name(tensor), found.seen))
            if self.program is not None:
                self.program.look(tensor, reader)
        except Exception as error:
            self.refuse(error)

    def changed(self, tensors: Iterable[Tensor]) -> None:
        """Note that a recorded call has changed these tensors in place."""
        self.names.changed(tensors)
        self.gradients_changed()

    def finish(self, result: Any) -> Any:
        """Check what is left at the end of the call, and return the form of its result."""
        if self.reason is not None:
            return None
        try:
            self.names.check()
            self.names.check_open(tensors_of(result))
            if self.crossing is not None:
                self.parts = self.crossing.finish(tensors_of(result))
            if any(key is number for key in keys_of(result) for number in self.numbers):
                raise Unrecordable("a number of item() is a key")
            return form(numbered(result, self.numbers), self.names.name)
        except Exception as error:
            self.refuse(error)
            return None

    def end(self) -> None:
        """Let go of all tensors but those from outside, which the next recording is to find again."""
        if self.program is not None:
            self.program.tracer.closed = True
            self.program.steps.close()
        self.program = self.crossing = None
        self.earlier = ()
        self._alive.clear()


@contextmanager
def _unheard() -> Iterator[None]:
    """Run without the profile function that hears of each call: no code of the function runs."""
    hear = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(hear)


def check_results(name: str, result: Any) -> None:
    """Raise unless an operation returned tensors only.

    Args:
        name: of the operation.
        result: what it returned.

    Raises:
        Unrecordable: it returned something else, which may be an element.
    """

    def check(each: Any) -> None:
        if not isinstance(each, Tensor) and each is not None:
            raise Unrecordable(f"{name}() returns {type(each).__name__}, no tensor")

    mapped(result, check)
