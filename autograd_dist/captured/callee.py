"""``CalleePart``: a function that is called in captured steps, at its worker; and ``CalleeReplay``, the calls of one replay."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import MethodType
from typing import Any

from ...base.errors import RpcError
from ...capture.extend import Compiled, Description, GivenUp, Leaving, Plan, mapped, tensors_of
from ...core.extend import Array, GraphTask, Tensor, gradient_edge, watchers
from ..graph import SendNode
from .straight import run_straight

CHANGES = "its function changes something (running statistics, random numbers), and the step has other calls"
SUMS = "a parameter is used several times in one call, and in another call of the step"


class Slot:
    """Place of a tensor in the arguments of a part."""

    def __init__(self, place: int) -> None:
        self.place = place


class QuietlyCompiled(Compiled):
    """A function that is called for other workers: these say why it runs eagerly."""

    _shared = True  # steps of several callers change its parameters

    def _say(self, text: str) -> None:
        pass


class CalleePart:
    """Function that is called in a captured step, with its arguments.

    Args:
        find: finds what is called, as calls do.
        function: what it has found.
        compiled: the function.
        arguments: its positional and named arguments, with a ``Slot`` for each tensor.
        marked: places of the tensors that require grad.
        reason: why it cannot be replayed; empty if it can.
    """

    def __init__(
        self,
        find: Callable[[], Any],
        function: Any,
        compiled: QuietlyCompiled,
        arguments: Any,
        marked: Sequence[int],
        reason: str,
    ) -> None:
        self._find, self._function = find, function
        self._compiled, self._arguments, self._marked, self._reason = compiled, arguments, marked, reason

    @property
    def description(self) -> Description:
        """Description of what was recorded."""
        return Description([f"eager: {self._reason}"]) if self._reason else self._compiled.description()

    def forward(self, tensors: Sequence[Tensor], replay: CalleeReplay, place: int, alone: bool) -> Sequence[Array]:
        """Replay the forward, and return the results.

        Args:
            tensors: those among the arguments.
            replay: gets the call.
            place: of the call among those of the step.
            alone: whether the function may change something: no other call of the step can be refused after it.

        Raises:
            GivenUp: there is no plan; nothing has happened.
        """
        if self._reason:
            raise GivenUp(self._reason, final=True)
        if not is_same(self._find, self._function):
            raise GivenUp("another function is found by its name", final=False)
        leaving = Leaving(len(self._marked))
        for slot, marked in enumerate(self._marked):
            tensors[marked]._requires_grad, tensors[marked]._edge = True, (leaving, slot)
        args, kwargs = mapped(self._arguments, lambda each: tensors[each.place] if type(each) is Slot else each)
        if watchers() or (found := self._compiled.fitting(args, kwargs)) is None:
            raise GivenUp("it has no plan for this call now", final=False)
        plan, given = found
        if not (alone or plan.pure):
            raise GivenUp(CHANGES, final=True)
        replay.admit(plan)
        call = CalleeCall(tensors_of(plan.replay(given)), leaving)
        replay.add(place, call)
        return call.arrays


class CalleeCall:
    """Call of a replay that waits for gradients.

    Args:
        results: what the function returned.
        leaving: where gradients of its arguments arrive.

    Attributes:
        arrays: the results.
        root: where a pass begins.
    """

    def __init__(self, results: Sequence[Tensor], leaving: Leaving) -> None:
        self.arrays = [each._array for each in results]
        edges = tuple([gradient_edge(each) for each in results if each._requires_grad])
        self.root, self._leaving = SendNode(edges, 0, 0), leaving

    def run_alone(self, gradients: Sequence[Any]) -> dict[int, Any] | None:
        """Run the pass of the only call of a step (``run_straight``)."""
        return run_straight(self.root, self._leaving, gradients)

    @property
    def gradients(self) -> Sequence[Any]:
        """The gradients of the arguments, after the pass."""
        return self._leaving.gradients or [None] * self._leaving.num_inputs


class CalleeReplay:
    """Calls of one replay of a step at one worker. One pass goes over all of them, as in eager code.

    Attributes:
        found: gradients of this worker's tensors, by their ids.
    """

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}
        self._calls: dict[int, CalleeCall] = {}
        self._plans: list[Plan] = []
        self._left: set[int] = set()
        self._task: GraphTask | None = None
        self._lock = threading.Lock()

    def admit(self, plan: Plan) -> None:
        """Note that a plan is going to be replayed.

        Raises:
            GivenUp: the order of sums would be another one than in eager code.
        """
        with self._lock:
            if any(_mix(plan, each) or _mix(each, plan) for each in self._plans):
                raise GivenUp(SUMS, final=True)
            self._plans.append(plan)

    def add(self, place: int, call: CalleeCall) -> None:
        """Add a call.

        Args:
            place: of the call among those of the step.
            call: the call.
        """
        with self._lock:
            self._calls[place] = call
            self._left.add(place)

    def backward(self, places: Sequence[int], gradients: Sequence[Any]) -> tuple[Sequence[Any], bool]:
        """Return the gradients of the arguments of some calls, and whether all calls have got their gradients.

        Args:
            places: of the calls.
            gradients: of their results, one call after the other.
        """
        with self._lock:
            if not self._left.issuperset(places):
                raise RpcError("gradients of a captured step came twice, or for a call that this worker does not know")
            calls, start = [self._calls[place] for place in places], 0
            if len(self._calls) == 1 and (found := calls[0].run_alone(gradients)) is not None:
                self.found = found
                self._left.clear()
                return calls[0].gradients, True
            if (task := self._task) is None:
                task = self._task = GraphTask(sink=self._deliver)
                task.expect(*[each.root for each in self._calls.values()])
            for each in calls:
                stop = start + each.root.num_inputs
                task.feed(each.root, gradients[start:stop])
                start = stop
            task.run()
            self._left.difference_update(places)
            return [gradient for each in calls for gradient in each.gradients], not self._left

    def _deliver(self, leaf: Tensor, gradient: Any) -> None:
        self.found[id(leaf)] = gradient


def _mix(plan: Plan, other: Plan) -> bool:
    """Return whether gradients that a plan adds up itself would be added up in another order with those of another plan."""
    return bool(plan.sums) and any(each is leaf for each in other.leaves for leaf in plan.sums)


def is_same(find: Callable[[], Any], function: Any) -> bool:
    """Return whether a function is still what calls find.

    Args:
        find: finds it.
        function: what it has found before.
    """
    with suppress(Exception):
        found = find()
        if isinstance(function, MethodType) and isinstance(found, MethodType):
            return found.__func__ is function.__func__ and found.__self__ is function.__self__
        return found is function
    return False


def slot_of(tensors: Sequence[Tensor], each: Any) -> Any:
    """Return the ``Slot`` of an argument that is one of some tensors; any other as it is.

    Args:
        tensors: those of the message, in order.
        each: the argument.
    """
    found = [place for place, tensor in enumerate(tensors) if tensor is each]
    return Slot(found[0]) if found else each
