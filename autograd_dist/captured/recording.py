"""``StepCrossing``: what the recording of a step knows of its distributed part.

The recorded calls run as they are, with their context, their nodes and their pass. This only looks on: which tensors are sent,
which gradients come back, and which parameters a step updates. Its context keeps graphs until it ends, because the pass is
repeated on stand-ins after it has run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from threading import get_ident
from types import FrameType
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from ...base.errors import IllegalEventError
from ...capture.extend import (
    Hop,
    PassAcross,
    Place,
    Recorder,
    RemotePart,
    Unrecordable,
    Value,
    drops,
    form,
    mapped,
    tensors_of,
)
from ...core.extend import Array, Tensor
from ...rpc.extend import EXACTLY_ONCE_MARK, UNSET_RPC_TIMEOUT, Outgoing, Peer, current_agent, name_of, reference
from ...rref import RemoteModule, RRef
from ...rref.extend import call_of_proxy, owner_of
from ..backward_pass import LARGE
from ..contexts import Context, contexts_of
from ..current_context import current_context
from ..graph import SendNode
from ..local_pass import PassKind
from ..optimizer import DistributedOptimizer
from .call import CapturedCall
from .callee import slot_of
from .parts import CapturedParts
from .plain import PlainCall
from .recorded_call import RecordedCall, RecordedPlainCall, check_plain
from .replays import Owners
from .requests import StepRequests
from .states import StepForm, StepMove, StepPlace
from .step import CapturedStep, GradientMessage

PASSED = {
    ("rref.rref", "rpc_sync"),
    ("rref.rref", "rpc_async"),
    ("rref.rref", "owner"),
    ("rref.rref", "owner_name"),
    ("rref.rref", "is_owner"),
    ("rref.rref", "local_value"),
    ("rref.proxy", "__init__"),
    ("rref.proxy", "__getattr__"),
}
"""Functions of references that send nothing, and give the same in each call."""
PLAIN_BEFORE = "it calls a worker outside of the autograd context before it enters that; such calls stand behind it"
"""Reason: a replay can be given up at its calls in the context, as long as nothing has happened."""
End: TypeAlias = Callable[[Any], None]  # gets what a call has returned


class StepCrossing:
    """Distributed part of one recorded step.

    Args:
        recorder: the recording.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._form = self._first_form()
        self._context: Context | None = None
        self._calls: list[RecordedCall] = []
        self._leaving: RecordedCall | RecordedPlainCall | None = None  # the call whose message has not left
        self._plain: list[RecordedPlainCall] = []
        self._futures: dict[int, tuple[Any, RecordedCall | RecordedPlainCall]] = {}  # by their ids
        self._arrivals: list[list[tuple[int, Any]]] = []  # gradients that came, by the ids of messages
        self._replay: Value | None = None
        self._gradients: list[tuple[Tensor, Any]] = []
        self._running: list[tuple[FrameType, End]] = []
        self._unused = False  # whether the caller does not use what a call has returned

    @cached_property
    def _parts(self) -> CapturedParts:
        return current_agent().part(CapturedParts)

    def _first_form(self) -> StepForm:
        return StepForm()

    @cached_property
    def _requests(self) -> StepRequests:
        return StepRequests(self._parts)

    @cached_property
    def _step(self) -> CapturedStep:
        return CapturedStep(self._requests)

    # -- what the recorder hears

    def begins(self, frame: FrameType) -> bool:
        """Note a call into packages about other workers (``Crossing.begins``)."""
        place = frame.f_globals.get("__name__", "").partition(".")[2], frame.f_code.co_name
        begin = BEGINS.get(place)
        if begin is None:
            return place in PASSED
        if (end := begin(self, frame.f_locals)) is None:
            return False
        self._recorder.check_uncaught(frame.f_back)
        self._running.append((frame, end))
        return True

    def ended(self, frame: FrameType, result: Any) -> None:
        """Note the end of such a call (``Crossing.ended``)."""
        if self._running and self._running[-1][0] is frame:
            _, end = self._running.pop()
            self._unused = drops(frame.f_back)
            end(result)

    def finish(self, results: list[Tensor]) -> list[RemotePart]:
        """Return the parts of the callees (``Crossing.finish``)."""
        self._move(StepMove.RETURN)
        if not (self._calls or self._plain) and self._form.place is not StepPlace.LEFT:
            return []  # it has looked at references only
        if open_ones := self._not_taken(self._plain):
            raise Unrecordable(
                "it does not wait for the result of a call of another worker, or that has failed", places=open_ones
            )
        if self._recorder.looks:
            raise Unrecordable("it looks at elements in a step that calls another worker")
        self._check_results(results)
        if self._form.alone is not None:
            self._calls[self._form.alone].call.alone = True
        return [self._step, *[each.call for each in self._calls], *[each.call for each in self._plain]]

    def _check_results(self, results: list[Tensor]) -> None:
        if any(each._requires_grad for each in results):
            raise Unrecordable("a result requires grad; return detach() of it from a step with calls of other workers")

    def passing(self) -> PassAcross | None:
        """Return ``None``: no result of a step requires grad (``Crossing.passing``)."""
        return None

    def _move(self, move: StepMove, call: int | None = None) -> None:
        try:
            self._form.move(move, call)
        except IllegalEventError as error:
            places = self._not_taken(self._calls) if move in (StepMove.BACKWARD, StepMove.RETURN) else ()
            raise Unrecordable(str(error), places=places) from None

    def _not_taken(self, calls: Sequence[RecordedCall | RecordedPlainCall]) -> Sequence[Place]:
        """Return where those calls are whose results are not taken."""
        return [each.called_at for each in calls if each.results is None]

    # -- the context: a generator, which is heard when it begins and when it goes on

    def _context_runs(self, given: dict[str, Any]) -> End:
        inside = self._form.place not in (StepPlace.OUTSIDE, StepPlace.JOINED)
        self._move(StepMove.LEAVE if inside else StepMove.ENTER)
        return self._left if inside else self._entered

    def _entered(self, context_id: Any) -> None:
        self._watch(contexts_of(current_agent()).find(context_id))
        assert self._context is not None
        self._context.graph.watches.append(self._came)

    def _watch(self, context: Context) -> None:
        """Look on at the messages that this thread sends in a context."""
        self._context = context
        context.recorded[get_ident()] = self
        self._recorder.events.append(("context",))
        if self._recorder.program is not None:
            tracer = self._recorder.program.tracer
            self._replay = tracer.value(storages=frozenset())
            tracer.effect(self._requests.begin, (), self._replay)

    def _left(self, _: Any) -> None:
        self._context = None

    def _check_context(self, context_id: Any) -> None:
        if self._context is None or context_id != self._context.id:
            raise Unrecordable("it uses an autograd context that it has not entered")

    # -- calls

    def _begin_function(self, given: dict[str, Any]) -> End:
        if given["retry"] is not None:
            raise Unrecordable("calls with retry= are not recorded")
        args, kwargs = tuple(given["args"] or ()), given["kwargs"] or {}
        callee = current_agent().peers.find(given["to"]).number
        what = "function", callee, given["func"]
        return self._begin(what, name_of(given["func"]), args, kwargs, given["timeout"], self._arrives)

    def _begin_function_async(self, given: dict[str, Any]) -> End:
        self._begin_function(given)
        return self._promised

    def _begin_method(self, given: dict[str, Any]) -> End:
        found = call_of_proxy(given["self"])
        if found is None:
            raise Unrecordable("calls of methods are recorded in rref.rpc_sync() and rref.rpc_async() only")
        reference, timeout, is_future = found
        name = given["name"]
        what, title = ("method", reference, name), f"{reference}.{name}"
        return self._begin(
            what, title, given["args"], given["kwargs"], timeout, self._promised if is_future else self._arrives
        )

    def _begin_module(self, given: dict[str, Any]) -> End:
        module: RemoteModule = given["self"]
        name = f"forward of {module.module_rref}"
        return self._begin(("module", module), name, given["args"], given["kwargs"], UNSET_RPC_TIMEOUT, self._arrives)

    def _begin_module_async(self, given: dict[str, Any]) -> End:
        self._begin_module(given)
        return self._promised

    def _begin(self, what: tuple[Any, ...], name: str, args: Any, kwargs: Any, timeout: float, end: End) -> End:
        self._step.references += map(ref, references_in((what[1:], args, kwargs)))
        if self._form.place in (StepPlace.OUTSIDE, StepPlace.LEFT):
            self._leaving = self._plain_call(what, name, (args, kwargs), timeout)
            return end
        self._move(StepMove.CALL)
        if self._plain:
            raise Unrecordable(PLAIN_BEFORE, places=[each.called_at for each in self._plain])
        recorder = self._recorder
        call = CapturedCall(self._requests, next(self._parts.numbers), len(self._calls), name, timeout)
        self._leaving = recorded = RecordedCall(recorder, call, (args, kwargs))
        self._calls.append(recorded)
        self._step.calls.append(call)
        kind, *objects = what
        recorder.events.append(
            (kind, *[_same(each) for each in objects], form((args, kwargs), recorder.names.name), timeout)
        )
        return end

    def sending(self, message: Outgoing) -> int:
        """Note that a message leaves; return the number of the part that it calls, 0 if it calls none. In its thread."""
        call = self._leaving
        if not isinstance(call, RecordedCall) or call.sends is not None:
            return 0
        agent = current_agent()
        if message.to == agent.number:
            self._recorder.stop("it calls its own worker")
            return 0
        return call.leaves(agent.peers.at(message.to), message.attached.tensors)

    def sent(self, node: SendNode) -> None:
        """Note the node of the tensors that are sent."""
        if isinstance(self._leaving, RecordedCall) and self._leaving.sends is None:
            self._leaving.message_id = node.message_id

    def _plain_call(self, what: tuple[Any, ...], name: str, args: Any, timeout: float) -> RecordedPlainCall:
        """Return a call outside of the context that begins."""
        self._move(StepMove.PLAIN)
        if current_context.get() is not None:
            raise Unrecordable("it calls other workers in an autograd context that it has not entered")
        mapped(args, check_plain)
        recorder = self._recorder
        recorder.events.append((*map(_same, what), form(args, recorder.names.name), timeout))
        tensors = list({id(each): each for each in tensors_of(args)}.values())
        peer, target = _target(what)
        if peer.number == current_agent().number:
            raise Unrecordable("it calls its own worker")
        definition = *target, mapped(args, partial(slot_of, tensors)), [each._requires_grad for each in tensors]
        call = PlainCall(self._requests, peer, next(self._parts.numbers), name, timeout, definition)
        self._step.plain.append(call)
        self._plain.append(RecordedPlainCall(recorder, call, tensors))
        return self._plain[-1]

    def _has_left(self) -> RecordedCall | RecordedPlainCall:
        call, self._leaving = self._leaving, None
        if call is None:
            raise Unrecordable("calls of other workers are inside of one another")
        call.sent(self._replay)
        return call

    def _arrives(self, result: Any) -> None:
        self._arrived(self._has_left(), result)

    def _promised(self, future: Any) -> None:
        self._futures[id(future)] = future, self._has_left()

    def _arrived(self, call: RecordedCall | RecordedPlainCall, result: Any) -> None:
        if call.results is None:
            if isinstance(call, RecordedCall):
                self._move(StepMove.TAKE, call.call.place)
            call.arrived(result, self._unused)
            call.unused = self._unused
        elif call.unused and not self._unused:
            raise Unrecordable("it uses the result of a call of another worker, for which it has waited before")

    def _begin_wait(self, given: dict[str, Any]) -> End | None:
        _, call = self._futures.get(id(given["self"]), (None, None))
        if call is None:
            return None
        if given.get("timeout") is not None:
            raise Unrecordable("wait() with a time-out is not recorded; give it to rpc_async()")
        return partial(self._arrived, call)

    def _begin_wait_all(self, given: dict[str, Any]) -> End | None:
        futures = given["futures"]
        if not isinstance(futures, (list, tuple)) or given["timeout"] is not None:
            return None
        found = [self._futures.get(id(each), (None, None))[1] for each in futures]
        calls = [each for each in found if each is not None]
        return partial(self._all_arrived, calls) if len(calls) == len(futures) else None

    def _all_arrived(self, calls: Sequence[RecordedCall | RecordedPlainCall], results: Any) -> None:
        for call, result in zip(calls, results or [None] * len(calls)):
            self._arrived(call, result)

    # -- the backward pass

    def _came(self, entries: Sequence[Any]) -> None:
        """Note entries that come to the pass. In any thread."""
        self._arrivals.append(gradients_in(entries))

    def _begin_backward(self, given: dict[str, Any]) -> End:
        self._move(StepMove.BACKWARD)
        self._check_context(given["context_id"])
        if given["retain_graph"] or given["mode"] != "smart":
            raise Unrecordable("backward() with retain_graph or another mode is not recorded")
        roots = list(given["roots"])
        self._recorder.events.append(("distributed backward", form(roots, self._recorder.names.name)))
        return partial(self._differentiated, roots)

    def _differentiated(self, roots: Sequence[Tensor], _: Any) -> None:
        context, program = self._context, self._recorder.program
        assert context is not None
        if len(context.graph.receive_nodes()) != len(self._calls):
            raise Unrecordable("another worker sends tensors in this context")
        by_message = {each.message_id: each for each in self._calls if each.message_id}
        arrivals = [[(by_message[number], given) for number, given in batch] for batch in self._arrivals]
        for call, gradients in [each for batch in arrivals for each in batch]:
            call.call.arrived = gradients
        if any(not each.call.arrived for each in by_message.values()):
            raise Unrecordable("no gradients come back from the call of another worker")
        if program is None or self._replay is None:
            return
        program.tracer.keep = False
        hops = {each.hop: each.call for each in self._calls if each.hop is not None}
        came = [[(each.hop, given) for each, given in batch if each.hop is not None] for batch in arrivals]
        passing = PassAcross(program, self._replay, list(hops), partial(self._message, hops), LARGE, came)
        self._gradients = passing.run_step(roots, context.graph.gradients_of)

    def _message(self, calls: Mapping[Hop, CapturedCall], hops: Sequence[Hop]) -> GradientMessage:
        for each in hops:
            calls[each].whole = all(gradient is not None for gradient in each.leaving.gradients or ())
        given = [calls[each] for each in hops]
        message = GradientMessage(self._requests, given, given[0].callee)
        self._step.messages.append(message)
        return message

    # -- the step

    def _begin_step(self, given: dict[str, Any]) -> End:
        if not isinstance(given["self"], DistributedOptimizer):
            raise Unrecordable("it steps a scheduler of learning rates; do that outside")
        self._move(StepMove.STEP)
        self._check_context(given["context_id"])
        self._recorder.events.append(("distributed step", _same(given["self"])))
        return partial(self._stepped, given["self"])

    def _stepped(self, optimizer: DistributedOptimizer, _: Any) -> None:
        recorder = self._recorder
        callees = [each.call.callee for each in self._calls]
        owners: dict[int, int] = {}
        found = {id(leaf): gradient for leaf, gradient in self._gradients}
        steps: dict[str, Any] = {}
        parameters: list[Tensor] = []
        for part in optimizer.remote_optimizers:
            name = part.owner_name()
            if part.is_owner():
                mine = part.local_value()
                parameters += mine.parameters
                steps[name] = mine, [found.get(id(each)) for each in mine.parameters]
            else:
                owner, steps[name] = owner_of(part), None
                owners[owner.number] = optimizer.number_at(name)
                self._step.optimizers.append(owner)
        self._requests.owners = Owners.of(owners)
        self._step.far = [each for each in self._step.optimizers if each not in callees]
        if recorder.program is not None:
            given = self._replay, steps
            recorder.program.tracer.effect(self._step.step, given, changes=True, escapes=True)
        recorder.names.close(parameters)


BEGINS: dict[tuple[str, str], Callable[[StepCrossing, dict[str, Any]], End | None]] = {
    ("autograd_dist.api", "context"): StepCrossing._context_runs,
    ("rpc.api", "rpc_sync"): StepCrossing._begin_function,
    ("rpc.api", "rpc_async"): StepCrossing._begin_function_async,
    ("rref.proxy", "<lambda>"): StepCrossing._begin_method,
    ("rref.remote_module", "forward"): StepCrossing._begin_module,
    ("rref.remote_module", "forward_async"): StepCrossing._begin_module_async,
    ("core.futures.future", "wait"): StepCrossing._begin_wait,
    ("core.futures.future", "value"): StepCrossing._begin_wait,
    ("core.futures.outcomes", "wait_all"): StepCrossing._begin_wait_all,
    ("autograd_dist.api", "backward"): StepCrossing._begin_backward,
    ("autograd_dist.optimizer", "step"): StepCrossing._begin_step,
}


def _same(each: Any) -> Any:
    """Return what is equal for the same object, or an equal text or number."""
    return each if isinstance(each, (str, int)) else (type(each), id(each))


def _target(what: tuple[Any, ...]) -> tuple[Peer, tuple[Any, ...]]:
    """Return the callee of a call, and what defines its function there.

    Raises:
        Unrecordable: the function has no name there, or its calls are kept by a journal.
    """
    kind, given, *more = what
    if kind == "function":
        peer, (function,) = current_agent().peers.at(given), more
        named = reference(function, peer.same_main)
        if named is None or getattr(function, EXACTLY_ONCE_MARK, False):
            raise Unrecordable(f"{name_of(function)} travels by value, or its effects happen exactly once")
        return peer, ("function", named, "")
    reference_to = given.module_rref if kind == "module" else given
    return owner_of(reference_to), ("method", reference_to, more[0] if more else "__call__")


def references_in(tree: Any) -> list[RRef[Any]]:
    """Return the references in what is called and its arguments."""
    found: list[RRef[Any]] = []

    def look(each: Any) -> None:
        if isinstance(each, (RRef, RemoteModule)):
            found.append(each if isinstance(each, RRef) else each.module_rref)

    mapped(tree, look)
    return found


def gradients_in(entries: Sequence[Any]) -> list[tuple[int, list[Array | None]]]:
    """Return the gradients among the entries of a pass, by the ids of messages."""
    return [(number, _arrays(gradients)) for kind, number, gradients in entries if kind == PassKind.FED]


def _arrays(gradients: Sequence[Any]) -> list[Array | None]:
    return [None if each is None else np.asarray(getattr(each, "_array", each)) for each in gradients]
