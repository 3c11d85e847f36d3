"""``record``: one eager call, and what is known of it afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from ..core.extend import Tensor
from .calls import Calls
from .crossings import Across
from .errors import Unrecordable
from .looks import LOOK
from .memory import check_second_half
from .modules import body_of
from .onnx_graph import Exported
from .outcomes import Outcome
from .parts import Outside, Part, parts_of
from .plan import Plan
from .program import Program
from .recorded import Input
from .recorder import Recorder
from .segments import GRAPHS
from .source import Source
from .state import State
from .trees import Number, numbered, tensors_of
from .values import Backward, Outer, Statement, Value, mapped

_RESULTS = 3  # that require grad: a plan has a backward pass for each choice of them


class Recording:
    """One recorded call.

    Attributes:
        recorder: its events.
        result: the form of its result.
        reason: why it cannot be replayed, or ``None``.
        plan: its program, if that was wanted.
        state: the objects that the function read.
        lines: of the function: those that are the reason; empty if that is not known.
        names: of variables and attributes that are the reason.
        stores: whether the reason is an object that the function itself has changed.
        divisible: whether the function can be divided into segments.
        graphs: places of tensors that require grad in its result, if that is a tuple.
    """

    def __init__(
        self,
        recorder: Recorder | None,
        result: Any,
        reason: str | None,
        plan: Plan | None = None,
        state: State | None = None,
    ) -> None:
        self.recorder, self.result, self.reason, self.plan, self.state = recorder, result, reason, plan, state
        self.lines: Sequence[int] = ()
        self.names: Sequence[str] = ()
        self.stores = False
        self.graphs: Sequence[int] = ()
        self.divisible = recorder is None or not recorder.inspected
        if recorder is not None:
            self.lines = [each.line for each in recorder.places if each.line is not None]

    def same(self, other: Recording) -> bool:
        """Return whether another call did the same."""
        assert self.recorder is not None and other.recorder is not None
        return self.recorder.events == other.recorder.events and self.result == other.result

    def parting(self, other: Recording) -> int | None:
        """Return the place of the first event in which another call differs; ``None`` if there is none."""
        assert self.recorder is not None and other.recorder is not None
        pairs = zip(self.recorder.events, other.recorder.events)
        return next((place for place, (one, two) in enumerate(pairs) if one != two), None)

    def look(self, place: int, other: Recording) -> Any:
        """Return the event of the look at which another call saw another value; ``None`` if the event is another one."""
        assert self.recorder is not None and other.recorder is not None
        one, two = self.recorder.events[place], other.recorder.events[place]
        return one if one[0] == LOOK and one[:-1] == two[:-1] else None

    def difference(self, place: int | None) -> str:
        """Return a description of the first difference to another call."""
        assert self.recorder is not None
        if place is None:
            return "the numbers of operations or the results differ"
        event = self.recorder.events[place]
        name = getattr(event[0], "__name__", event[0])
        line = "".join(f" in line {each}" for each in self.at(place))
        return f"operation {place + 1}, {name}(){line}, has arguments that were made anew or have other values"

    def at(self, place: int | None) -> Sequence[int]:
        """Return the line of the function at which an event was, if that is known."""
        assert self.recorder is not None
        line = None if place is None else self.recorder.lines[place]
        return () if line is None else (line,)


def record(
    function: Callable[..., Any],
    name: str,
    tensors: list[Tensor],
    args: Any,
    kwargs: Any,
    earlier: Sequence[Recording],
    fast: bool = False,
    changes: bool = False,
    whole: CodeType | None = None,
) -> tuple[Recording, Any]:
    """Call ``function`` and record it.

    Args:
        function: the function.
        name: of the function.
        tensors: those among its arguments.
        args: its arguments.
        kwargs: its named arguments.
        earlier: recordings of other calls; if there are some, a program is written, too.
        fast: whether its chains of arithmetic become compiled loops.
        changes: whether to look for the line that changes what the function reads.
        whole: code of the function that it is a segment of.

    Returns:
        What is known of the call, and its result.
    """
    try:
        state = State(function, *args, *kwargs.values(), besides=whole, given=tensors)
    except Exception as error:  # of whatever kind: the call itself has not failed
        names = error.names if isinstance(error, Unrecordable) else ()
        recording = Recording(None, None, f"{error}{f' ({names[0]})' if names else ''}")
        recording.names = names
        return recording, function(*args, **kwargs)
    code = getattr(body_of(function), "__code__", None)
    try:
        recorder = Recorder(tensors, bool(earlier), code)
        recorder.earlier = [each.recorder for each in earlier if each.recorder is not None]
    except Unrecordable as error:
        return Recording(None, None, str(error)), function(*args, **kwargs)
    inputs, outcome = [Input.of(tensor) for tensor in tensors], Outcome(tensors)  # before the call changes them
    try:
        calls = Calls(recorder, code, state if changes else None, whole)
        with recorder, calls:
            result = function(*args, **kwargs)
        form = recorder.finish(result)
        recording = Recording(recorder, form, recorder.reason or _effects(state), None, state)
        recording.divisible &= GRAPHS.isdisjoint(state.names)
        if isinstance(result, tuple):
            recording.graphs = [place for place, each in enumerate(result) if _requires_grad(each)]
        if recorder.reason is None:
            recording.lines = [calls.change] if calls.change else ()
            recording.stores = recording.reason is not None and not calls.change
        if recording.reason is None and recorder.program is not None:
            try:
                outcome.check(result, state, recorder.names.outside)
                recording.plan = _plan(recorder, recorder.program, result, name, tensors, inputs, state, fast)
            except Exception as error:  # a program that cannot be written is no error of the caller
                recording.reason = str(error)
                if (look := getattr(error, "look", None)) is not None:
                    recording.lines = [recorder.looks[look].at or 0]
                else:
                    recording.lines = [each.line for each in getattr(error, "places", ()) if each.line is not None]
        return recording, result
    finally:
        recorder.end()


def _requires_grad(tree: Any) -> bool:
    return any(each._requires_grad for each in tensors_of(tree))


def _effects(state: State) -> str | None:
    if state.modes_differ():
        return "the call changes the grad mode or the default dtype"
    if state.drawn():
        return "random numbers of NumPy are drawn"
    change = next(state.differences(), None)
    return None if change is None else f"the call changes what it reads: {change}"


def _plan(
    recorder: Recorder,
    program: Program,
    result: Any,
    name: str,
    tensors: list[Tensor],
    given: list[Input],
    state: State,
    fast: bool,
) -> Plan:
    statements: Sequence[Statement] = program.tracer.statements
    returned = [
        each for each in tensors_of(result) if each._requires_grad and type(program.shadows.argument(each)) is not Outer
    ]
    recorded = list({id(each): each for each in returned}.values())
    half, backwards = len(statements), list[Backward]()
    if recorded:
        across = None if recorder.crossing is None else recorder.crossing.passing()
        backwards = _backwards(program, recorded, across)
        check_second_half(statements, half)
    result = numbered(result, recorder.numbers)
    _check_shapes(program)
    inputs = list({id(each): each for backward in backwards for each in backward.inputs}.values())
    tensors_returned: dict[int, Any] = {}  # a tensor that is returned under two names is one in a replay, too

    def returned_as(each: Any) -> Any:
        return tensors_returned.setdefault(id(each), _returned(program, each))

    results = mapped(result, returned_as)
    parts = list[Part]()
    if recorder.looks:
        parts = _parts(recorder, program, half, tensors, (results, [each.gradients for each in backwards]), fast)
        before = len(statements) - len(parts[-1].statements)  # statements in the other parts
        statements, half = parts[-1].statements, half - before
        for each in backwards:
            each.start -= before
    found, read = recorder.names.found, program.shadows.read(statements[half:])
    live = _without(parts[-1].live, backwards) if parts else None
    source = Source(
        statements, half, program.shadows.arrays(), results, found, len(given), backwards, inputs, fast, live=live
    )
    label = f"{name}, {len(recorder.events)} operations"
    plan = Plan(source, found, state, label, program.whole, given)
    if recorder.caught is not None and not plan.pure:
        raise Unrecordable(
            "it changes tensors and may catch an error of an operation; put the try statement around the compiled function",
            places=[recorder.caught],
        )
    plan.gradients = [(program.shadows.argument(leaf), kind) for leaf, kind in recorder.gradients.before()]
    plan.parts, plan.looks, plan.remote = parts, recorder.looks, recorder.parts
    plan.sums = [each for backward in backwards for each in backward.sums if any(each is leaf for leaf in plan.leaves)]
    if any(each.draws for some in (statements, *(part.statements for part in parts[:-1])) for each in some):
        plan.generators = recorder.generators
    steps = program.steps
    references = [(steps.ref(each), each) for each in found]
    if not recorder.numbers:
        plan.exported = Exported(steps.steps, [steps.ref(each) for each in tensors], references, steps.tree(result))
    if recorded:
        slots = [next(slot for slot, other in enumerate(recorded) if other is each) for each in returned]
        plan.differentiable(name, [program.shadows.argument(each) for each in inputs], read, slots)
    return plan


def _check_shapes(program: Program) -> None:
    """Raise if a replay could end with an error after it has changed something, as a shape is another one.

    Raises:
        Unrecordable: it could.
    """
    tracer = program.tracer
    if tracer.dynamic is not None and any(each.changes for each in tracer.statements):
        raise Unrecordable(
            f"the shape of a result of {tracer.dynamic} depends on elements, and the call changes tensors; "
            "use tg.where() or products with the mask"
        )


def _parts(
    recorder: Recorder, program: Program, half: int, tensors: list[Tensor], results: Any, fast: bool
) -> list[Part]:
    """Return the parts of a program between its looks."""
    statements, arrays, found = program.tracer.statements, program.shadows.arrays(), recorder.names.found

    def tensor(outer: Outer) -> Tensor:
        return found[outer.place] if outer.found else tensors[outer.place]

    replaced = recorder.gradients.replaced()
    memory = {number: tensor(each)._array for number, each in arrays.items()}
    outside = Outside(memory, tensor, statements, replaced is not None)
    divided = parts_of(statements, half, outside)
    seen = [each.seen for each in recorder.looks]
    inner = [Part(part, value, (), arrays, found, len(tensors), fast) for part, value in zip(divided, seen)]
    done: set[int] = set()
    for each in inner:
        leaves = outside.leaves_of(each.statements)
        each.replaces = [(leaf, (replaced or {})[id(leaf)]) for leaf in leaves if id(leaf) not in done]
        each.owners = outside.owners_of(each.statements)
        done.update(map(id, leaves))
    return [*inner, Part(divided[-1], None, results, arrays, found, len(tensors), fast)]


def _without(live: list[Value], backwards: list[Backward]) -> list[Value]:
    """Return the values that are no gradients from outside."""
    given = {value.number for each in backwards for value in each.given}
    return [each for each in live if each.number not in given]


def _backwards(program: Program, recorded: list[Tensor], across: Across | None) -> list[Backward]:
    """Write a backward pass for each choice of results that get a gradient, and return these.

    One over other workers is written for all results only: they know which of theirs get a gradient.
    """
    if len(recorded) > _RESULTS:
        raise Unrecordable(f"more than {_RESULTS} results require grad; return fewer, or call backward() inside")
    masks = list(itertools.product((True, False), repeat=len(recorded)))[:-1]
    if across is not None:
        masks = masks[:1]
    passes = [
        program.differentiate([each if used else None for each, used in zip(recorded, mask)], across) for mask in masks
    ]
    return [each for each in passes if each is not None]


def _returned(program: Program, each: Any) -> Any:
    if type(each) is Number:
        return program.numbers[each.place]
    if each is not None and not isinstance(each, (Tensor, bool, int, float, complex, str, bytes, np.dtype)):
        raise Unrecordable(
            f"a result of the class {type(each).__name__} may hold something of this call; return tensors"
        )
    return program.shadows.argument(each)
