"""``StepCrossing``: what the recording of a step knows of its distributed part.

The recorded calls run as they are, with their context, their nodes and their pass. This only looks on: which tensors are sent,
which gradients come back, and which parameters a step updates. Its context keeps graphs until it ends, because the pass is
repeated on stand-ins after it has run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any, TypeAlias

import numpy as np

from ...capture.extend import Hop, Recorder, RemotePart, Unrecordable, differentiate_across, form, mapped, tensors_of
from ...core.errors import IllegalEventError
from ...core.extend import Array, Tensor
from ...rpc.extend import UNSET_RPC_TIMEOUT, Outgoing, current_agent, name_of
from ...rref import RemoteModule
from ...rref.extend import call_of_proxy, owner_of
from ..contexts import Context, contexts_of
from ..graph import WatchedSendNode
from ..optimizer import DistributedOptimizer
from .call import CapturedCall
from .parts import CapturedParts
from .states import StepMove, StepPlace, next_place

PASSED = {("rref.rref", "rpc_sync"), ("rref.proxy", "__init__"), ("rref.proxy", "__getattr__")}
"""Functions that make the proxy of a reference: they send nothing."""
End: TypeAlias = Callable[[Any], None]  # gets what a call has returned


class StepCrossing:
    """Distributed part of one recorded step.

    Args:
        recorder: the recording.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._place = StepPlace.OUTSIDE
        self._context: Context | None = None
        self._call: CapturedCall | None = None
        self._given: Sequence[Tensor] = ()
        self._sends: Sequence[Tensor] | None = None  # the tensors of the call, when it has left
        self._node: WatchedSendNode | None = None
        self._hop: Hop | None = None
        self._results: list[Tensor] = []
        self._roots: list[Tensor] = []
        self._returned: Any = None
        self._gradients: list[tuple[Tensor, Any]] = []
        self._running: list[tuple[FrameType, End]] = []

    # -- what the recorder hears

    def begins(self, frame: FrameType) -> bool:
        """Note a call into packages about other workers (``Crossing.begins``)."""
        place = frame.f_globals.get("__name__", "").partition(".")[2], frame.f_code.co_name
        begin = BEGINS.get(place)
        if begin is not None:
            self._running.append((frame, begin(self, frame.f_locals)))
        return begin is not None or place in PASSED

    def ended(self, frame: FrameType, result: Any) -> None:
        """Note the end of such a call (``Crossing.ended``)."""
        if self._running and self._running[-1][0] is frame:
            _, end = self._running.pop()
            end(result)

    def finish(self, results: list[Tensor]) -> list[RemotePart]:
        """Return the part of the callee (``Crossing.finish``)."""
        if self._place is not StepPlace.LEFT or self._call is None:
            raise Unrecordable("its autograd context was left by an exception, or is not left")
        if self._recorder.looks:
            raise Unrecordable("it looks at elements in a step that calls another worker")
        if any(each._requires_grad for each in results):
            raise Unrecordable("a result requires grad; return detach() of it from a step with calls of other workers")
        return [self._call]

    def _move(self, move: StepMove) -> None:
        try:
            self._place = next_place(self._place, move)
        except IllegalEventError as error:
            raise Unrecordable(str(error)) from None

    # -- the context: a generator, which is heard when it begins and when it goes on

    def _context_runs(self, given: dict[str, Any]) -> End:
        inside = self._place is not StepPlace.OUTSIDE
        self._move(StepMove.LEAVE if inside else StepMove.ENTER)
        return self._left if inside else self._entered

    def _entered(self, context_id: Any) -> None:
        self._context = contexts_of(current_agent()).find(context_id)
        self._context.recorded = self
        self._recorder.events.append(("context",))

    def _left(self, _: Any) -> None:
        self._context = None

    def _check_context(self, context_id: Any) -> None:
        if self._context is None or context_id != self._context.id:
            raise Unrecordable("it uses an autograd context that it has not entered")

    # -- the call

    def _begin_function(self, given: dict[str, Any]) -> End:
        if given["retry"] is not None:
            raise Unrecordable("calls with retry= are not recorded")
        args, kwargs = tuple(given["args"] or ()), given["kwargs"] or {}
        callee = current_agent().peers.find(given["to"]).number
        return self._begin(("function", callee, given["func"]), name_of(given["func"]), args, kwargs, given["timeout"])

    def _begin_method(self, given: dict[str, Any]) -> End:
        found = call_of_proxy(given["self"])
        if found is None:
            raise Unrecordable("calls of methods are recorded in rref.rpc_sync().method(...) only")
        reference, timeout = found
        name = given["name"]
        return self._begin(("method", reference, name), f"{reference}.{name}", given["args"], given["kwargs"], timeout)

    def _begin_module(self, given: dict[str, Any]) -> End:
        module: RemoteModule = given["self"]
        name = f"forward of {module.module_rref}"
        return self._begin(("module", module), name, given["args"], given["kwargs"], UNSET_RPC_TIMEOUT)

    def _begin(self, what: tuple[Any, ...], name: str, args: Any, kwargs: Any, timeout: float) -> End:
        self._move(StepMove.CALL)
        mapped((args, kwargs), _check_plain)
        recorder, parts = self._recorder, current_agent().part(CapturedParts)
        kind, *objects = what
        self._given = tensors_of((args, kwargs))
        recorder.events.append(
            (kind, *[_same(each) for each in objects], form((args, kwargs), recorder.names.name), timeout)
        )
        self._call = CapturedCall(parts, next(parts.numbers), name, timeout)
        return self._arrived

    def sending(self, message: Outgoing) -> int:
        """Note that a message leaves; return the number of the part that it calls, 0 if it calls none. In its thread."""
        if self._call is None or self._sends is not None:
            return 0
        agent = current_agent()
        if message.to == agent.number:
            self._recorder.stop("it calls its own worker")
            return 0
        self._sends = list(message.attached.tensors)
        self._call.goes_to(agent.peers.at(message.to))
        return self._call.number

    def sent(self, node: WatchedSendNode) -> None:
        """Note the node of the tensors that are sent."""
        if self._node is None:
            self._node = node

    def _arrived(self, result: Any) -> None:
        recorder, call = self._recorder, self._call
        results = tensors_of(result)
        if any(not any(each is given for given in self._given) for each in self._sends or ()):
            raise Unrecordable("an argument of the call of another worker is an array of another library")
        if call is None or self._sends is None or not results or not _only_tensors(result):
            raise Unrecordable("the call of another worker returned something else than tensors, or has failed")
        if not any(each._requires_grad for each in results):
            raise Unrecordable("no result of the call of another worker requires grad")
        self._results = results
        recorder.events.append(("arrived", form(tuple(map(recorder.names.knows, results)), recorder.names.name)))
        recorder.keep((results, self._sends))
        call.is_like([each._array for each in results], ())
        if recorder.program is not None:
            self._hop = Hop(recorder.program, call.forward, self._sends, results)
        recorder.names.made(len(recorder.events), results)

    # -- the backward pass

    def _begin_backward(self, given: dict[str, Any]) -> End:
        self._move(StepMove.BACKWARD)
        self._check_context(given["context_id"])
        if given["retain_graph"] or given["mode"] != "smart":
            raise Unrecordable("backward() with retain_graph or another mode is not recorded")
        self._roots = list(given["roots"])
        self._recorder.events.append(("distributed backward", form(self._roots, self._recorder.names.name)))
        return self._differentiated

    def _differentiated(self, _: Any) -> None:
        recorder, call, context = self._recorder, self._call, self._context
        assert call is not None and context is not None
        arrived: Sequence[Array | None] = []
        if self._node is not None:
            if self._node.arrived is None:
                raise Unrecordable("no gradients come back from the call of another worker")
            arrived = [None if each is None else np.asarray(each) for each in self._node.arrived]
        if len(context.graph.receive_nodes()) != 1:
            raise Unrecordable("another worker sends tensors in this context")
        call.is_like([each._array for each in self._results], arrived)
        if recorder.program is None or self._hop is None:
            return
        recorder.program.tracer.keep = False
        self._returned, self._gradients = differentiate_across(
            recorder.program, self._roots, self._hop, call.backward, arrived, context.graph.gradients_of
        )

    # -- the step

    def _begin_step(self, given: dict[str, Any]) -> End:
        if not isinstance(given["self"], DistributedOptimizer):
            raise Unrecordable("it steps a scheduler of learning rates; do that outside")
        self._move(StepMove.STEP)
        self._check_context(given["context_id"])
        self._recorder.events.append(("distributed step", _same(given["self"])))
        return partial(self._stepped, given["self"])

    def _stepped(self, optimizer: Any, _: Any) -> None:
        recorder, call = self._recorder, self._call
        assert call is not None
        here: list[Any] = []
        for reference in optimizer.remote_optimizers:
            if reference.is_owner():
                here.append(reference.local_value())
            elif owner_of(reference) is call.peer:
                call.optimizer = optimizer.number_at(reference.owner_name())
            else:
                raise Unrecordable("its optimizer has parameters of a third worker")
        if recorder.program is not None:
            found = {id(leaf): gradient for leaf, gradient in self._gradients}
            steps = [(each, [found.get(id(parameter)) for parameter in each.parameters]) for each in here]
            recorder.program.tracer.effect(call.step, (self._returned, steps), changes=True, escapes=True)
        recorder.names.close(parameter for each in here for parameter in each.parameters)


BEGINS: dict[tuple[str, str], Callable[[StepCrossing, dict[str, Any]], End]] = {
    ("autograd_dist.api", "context"): StepCrossing._context_runs,
    ("rpc.api", "rpc_sync"): StepCrossing._begin_function,
    ("rref.proxy", "<lambda>"): StepCrossing._begin_method,
    ("rref.remote_module", "forward"): StepCrossing._begin_module,
    ("autograd_dist.api", "backward"): StepCrossing._begin_backward,
    ("autograd_dist.optimizer", "step"): StepCrossing._begin_step,
}


def _same(each: Any) -> Any:
    """Return what is equal for the same object, or an equal text or number."""
    return each if isinstance(each, (str, int)) else (type(each), id(each))


def _check_plain(each: Any) -> None:
    if not isinstance(each, (Tensor, bool, int, float, complex, str, bytes, type(None))):
        raise Unrecordable(
            f"an argument of the call of another worker is a {type(each).__name__}; give it tensors and numbers"
        )


def _only_tensors(result: Any) -> bool:
    return isinstance(result, Tensor) or (
        isinstance(result, (tuple, list)) and all(isinstance(each, Tensor) for each in result)
    )
