"""``CalleePart``: a function that is called in captured steps, at its worker; and ``CalleeReplay``, the calls of one replay."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from types import MethodType
from typing import Any, NamedTuple

from ...base.errors import IllegalEventError, RpcError
from ...capture.extend import Compiled, Description, GivenUp, Leaving, Plan, ReplayNode, mapped, tensors_of
from ...core import set_grad_enabled
from ...core.extend import Array, GraphTask, Tensor, gradient_edge, watchers
from ..graph import SendNode
from .replays import NO_OWNERS, ReplayNews, ServedPart, served_call
from .states import ReplayForm
from .straight import run_straight
from .undoing import Undoing

PARTIAL = "its function calls other workers, and not all of its results get gradients"
CHANGES = "its function changes something (running statistics, say), and the step has other calls"
SUMS = "a parameter is used several times in one call, and in another call of the step"


class Slot:
    """Place of a tensor in the arguments of a part."""

    def __init__(self, place: int) -> None:
        self.place = place


class Arguments:
    """Arguments of a part.

    Args:
        given: positional and named ones, with a ``Slot`` for each tensor.
    """

    def __init__(self, given: Any) -> None:
        args, kwargs = self.given = given
        alone = not kwargs and all(type(each) is Slot for each in args)
        self._places = [each.place for each in args] if alone else None

    def filled(self, tensors: Sequence[Tensor]) -> Any:
        """Return the arguments of a call.

        Args:
            tensors: its tensors.
        """
        if self._places is not None:  # tensors alone, the usual case
            return tuple([tensors[place] for place in self._places]), {}
        return mapped(self.given, lambda each: tensors[each.place] if type(each) is Slot else each)


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
        arguments: of its calls.
        marked: places of the tensors that require grad.
        reason: why it cannot be replayed; empty if it can.
    """

    def __init__(
        self,
        find: Callable[[], Any],
        function: Any,
        compiled: QuietlyCompiled,
        arguments: Arguments,
        marked: Sequence[int],
        reason: str,
    ) -> None:
        self._find, self._function = find, function
        self._compiled, self._arguments, self._marked, self._reason = compiled, arguments, marked, reason

    @property
    def description(self) -> Description:
        """Description of what was recorded."""
        return Description([f"eager: {self._reason}"]) if self._reason else self._compiled.description()

    def forward(
        self, tensors: Sequence[Tensor], replay: CalleeReplay, place: int, served: ServedPart, whole: bool
    ) -> Sequence[Array]:
        """Replay the forward, and return the results.

        Args:
            tensors: those among the arguments.
            replay: gets the call.
            place: of the call among those of its caller's part.
            served: the call. If no other one can be refused after it, the function may change something.
            whole: whether all results get gradients.

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
        args, kwargs = self._arguments.filled(tensors)
        if watchers() or (found := self._compiled.fitting(args, kwargs)) is None:
            raise GivenUp("it has no plan for this call now", final=False)
        plan, given = found
        if not (served.alone or plan.repeatable):
            raise GivenUp(CHANGES, final=True)
        if plan.remote and not whole:
            raise GivenUp(PARTIAL, final=True)
        replay.admit(plan)
        call = CalleeCall(tensors_of(self._run(plan, given, replay, served)), leaving)
        replay.add((served.origin.caller, served.origin.run, place), call)
        return call.arrays

    def _run(self, plan: Plan, given: Sequence[Tensor], replay: CalleeReplay, served: ServedPart) -> Any:
        if not plan.generators:
            return self._run_or_drop(plan, given, replay, served)
        states = [each.get_state() for each in plan.generators]
        result = self._run_or_drop(plan, given, replay, served)
        replay.undoing.drew(plan.generators, states)
        return result

    def _run_or_drop(self, plan: Plan, given: Sequence[Tensor], replay: CalleeReplay, served: ServedPart) -> Any:
        if not plan.remote:
            return plan.replay(given)
        token = served_call.set(served)
        try:
            return plan.replay(given)
        except GivenUp:  # by a worker that it calls
            self._compiled.drop(plan)
            replay.withdraw(plan)
            raise
        finally:
            served_call.reset(token)


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

    @cached_property
    def _node(self) -> ReplayNode | None:
        nodes = [edge[0] for edge in self.root.next_edges if edge is not None]
        return next((node for node in nodes if isinstance(node, ReplayNode)), None)

    @cached_property
    def behind(self) -> SendNode:
        """Node where a pass goes on when the backward of the plan has run."""
        node = self._node
        direct = [edge for edge in self.root.next_edges if edge is None or edge[0] is not node]
        return SendNode((*(() if node is None else node.next_edges), *direct), 0, 0)

    def differentiate(self, gradients: Sequence[Array | None]) -> Sequence[Any]:
        """Run the backward of the plan, which may wait for other workers; return gradients for ``behind``.

        Args:
            gradients: of the results.
        """
        node, direct = self._node, list[Any]()
        given: list[Any] = [None] * (0 if node is None else node.num_inputs)
        for edge, each in zip(self.root.next_edges, gradients):
            if edge is None or edge[0] is not node:
                direct.append(each)
            elif each is not None:
                given[edge[1]] = each if given[edge[1]] is None else given[edge[1]] + each
        if node is None:
            return direct
        with set_grad_enabled(False):
            found = node.apply(tuple(given))
        node.release()
        return [*found, *direct]

    @property
    def gradients(self) -> Sequence[Any]:
        """The gradients of the arguments, after the pass."""
        return self._leaving.gradients or [None] * self._leaving.num_inputs


class CalleeReplay:
    """Calls of one replay of a step at one worker, of one caller or several. One pass goes over all of them, as in eager code.

    Attributes:
        found: gradients of this worker's tensors, by their ids.
        news: what the workers that are called from here have told.
        undoing: what is put back if another worker cannot take part.
    """

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}
        self.undoing = Undoing()
        self.news = ReplayNews(NO_OWNERS)
        self._calls: dict[Any, CalleeCall] = {}
        self._used: list[Used] = []
        self._form = ReplayForm()
        self._task: GraphTask | None = None
        self._lock = threading.Lock()

    def admit(self, plan: Plan) -> None:
        """Note that a plan is going to be replayed.

        Raises:
            GivenUp: the order of sums would be another one than in eager code.
        """
        used = Used(plan.leaves, plan.sums)
        with self._lock:
            if any(_mix(used, each) or _mix(each, used) for each in self._used):
                raise GivenUp(SUMS, final=True)
            self._used.append(used)

    def withdraw(self, plan: Plan) -> None:
        """Note that a plan was not replayed to its end: another worker could not take part."""
        with self._lock:
            self._used = [each for each in self._used if each.leaves is not plan.leaves]

    @property
    def empty(self) -> bool:
        """True if no plan was replayed, and no other worker was called."""
        return not (self._used or self.undoing.runs)

    def add(self, key: Any, call: CalleeCall) -> None:
        """Add a call.

        Args:
            key: names the call in the replay.
            call: the call.
        """
        with self._lock:
            self._calls[key] = call
            self._form.returned(key)

    def backward(self, keys: Sequence[Any], gradients: Sequence[Array | None]) -> tuple[Sequence[Any], bool]:
        """Return the gradients of the arguments of some calls, and whether the backwards of all calls have run.

        Args:
            keys: of the calls.
            gradients: of their results, one call after the other.
        """
        with self._lock:
            calls = self._begin(keys)
            if len(self._calls) == 1 and (alone := calls[0].run_alone(gradients)) is not None:
                self.found = alone
                return calls[0].gradients, self._form.end(keys)
        given, start = list[Sequence[Any]](), 0
        for each in calls:  # without the lock: it may wait for other workers, which may call this one
            given.append(each.differentiate(gradients[start : start + each.root.num_inputs]))
            start += each.root.num_inputs
        with self._lock:
            if (task := self._task) is None:
                task = self._task = GraphTask(sink=self._deliver)
                task.expect(*[each.behind for each in self._calls.values()])
            for each, found in zip(calls, given):
                task.feed(each.behind, found)
            task.run()
            return [gradient for each in calls for gradient in each.gradients], self._form.end(keys)

    def _begin(self, keys: Sequence[Any]) -> list[CalleeCall]:
        try:
            self._form.begin(keys)
        except IllegalEventError as error:
            raise RpcError(str(error)) from None
        return [self._calls[key] for key in keys]

    def _deliver(self, leaf: Tensor, gradient: Any) -> None:
        self.found[id(leaf)] = gradient


class Used(NamedTuple):
    """Parameters that a plan uses. The plan itself would hold a user's objects.

    Attributes:
        leaves: tensors that require grad.
        sums: those whose gradients it adds up.
    """

    leaves: Sequence[Tensor]
    sums: Sequence[Tensor]


def _mix(plan: Used, other: Used) -> bool:
    """Return whether gradients that a plan adds up itself would be added up in another order with those of another plan."""
    return bool(plan.sums) and any(each is leaf for each in other.leaves for leaf in plan.sums)


def is_same(find: Callable[[], Any], function: Any) -> bool:
    """Return whether a function is still what calls find.

    Args:
        find: finds it.
        function: what it has found before.
    """
    try:
        found = find()
    except Exception:
        return False
    if isinstance(function, MethodType) and isinstance(found, MethodType):
        return found.__func__ is function.__func__ and found.__self__ is function.__self__
    return found is function


def slot_of(tensors: Sequence[Tensor], each: Any) -> Any:
    """Return the ``Slot`` of an argument that is one of some tensors; any other as it is.

    Args:
        tensors: those of the message, in order.
        each: the argument.
    """
    found = [place for place, tensor in enumerate(tensors) if tensor is each]
    return Slot(found[0]) if found else each
