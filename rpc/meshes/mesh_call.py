"""``MeshCall``: one mesh call at one worker: the driver of its state machine, its own part, and its parents."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...base.errors import RpcCancelledError
from ...core.extend import profiles
from ..calls.server_call import ServerCall
from ..wire.bundle import NONE, Content
from .children import ChildrenOwner, MeshChildren
from .relaying import (
    COMPLETE,
    ENDED,
    AnswerParent,
    AskChild,
    ForgetCall,
    Instruction,
    LeaveParent,
    RefuseParent,
    Relaying,
)
from .shared_call import SharedCall
from .warned_result import with_warnings

if TYPE_CHECKING:
    from .answers import GivenAnswer
    from .heads import RequestHead
    from .sink import Sink


class Owner(ChildrenOwner, Protocol):
    """Mesh calls of the agent (``MeshCalls``), as one of them sees them."""

    hurrying: bool  # parents that wait will soon get what is here

    def answer(
        self, call: MeshCall, parent: Any, results: Sequence[tuple[int, Content]], more: bool, start: int
    ) -> None:
        """Give a parent results.

        Args:
            call: the call.
            parent: the request of the worker that asked.
            results: with their places in the mesh.
            more: there will be others.
            start: position of the first of them.
        """
        ...

    def give(self, call: MeshCall, sink: Sink, results: Sequence[tuple[int, Content]]) -> None:
        """Give a caller's sink new results.

        Args:
            call, sink: the call and its sink.
            results: with their places in the mesh.
        """
        ...

    def hurry_later(self) -> None:
        """Give parents what is here, if they still wait for the rest in a while."""
        ...

    def cancel(self, call: MeshCall) -> bool:
        """Give up a call that is made here; return False if it was over."""
        ...

    def pack_result(self, caller: int, value: Any) -> Content:
        """Return a result for the worker of number ``caller``, captured; an error if it cannot be sent."""
        ...


class MeshCall(MeshChildren):
    """A mesh call at one worker.

    Args:
        calls: the mesh calls of the agent.
        head: of the request that brought it, or that a caller makes of it.
        relay: its state machine.
        call: the call, packed.
        parts: parts of scattered arguments, by the place in the mesh of the worker that gets them.
        deadline: time after which no worker waits for it, by the clock of the program; 0 for never.
        context: context variables of the code that the call runs for.

    Attributes:
        agent: the agent.
        recorded: whether profiles record it, so that one answer has all results and events.
        request: the request for which its own part runs.
        sink: takes the results at the caller, as they come.
        answers: given to parents, with tensors.
    """

    def __init__(
        self,
        calls: Owner,
        head: RequestHead,
        relay: Relaying[Content],
        call: Content | SharedCall,
        parts: Mapping[int, Content],
        deadline: float,
        context: contextvars.Context,
    ) -> None:
        super().__init__(calls, head, relay, call, parts, deadline)
        self._calls: Owner = calls
        self._opened: Content | SharedCall | None = None  # what this worker's part gets, if ``packed`` is a copy
        self.context = context
        self.recorded = bool(context.run(profiles.get))
        self.request: ServerCall | None = None
        self.sink: Sink | None = None
        self.answers: list[GivenAnswer] = []
        self._given = 0  # results that the sink has

    def feed(self, event: Callable[..., Sequence[Instruction]], *args: Any) -> None:
        """Give an event to the machine, and carry out its instructions.

        Args:
            event: its method.
            args: the arguments.
        """
        with self._lock:
            instructions = event(*args)
            if (sink := self.sink) is not None:
                news = self.relay.results[self._given :]
                self._given += len(news)
        if sink is not None and news:
            self._calls.give(self, sink, news)
        if instructions:
            # A copy, because other threads may use the context at the same time.
            self.context.copy().run(self._carry_out, instructions)
        if not self._calls.hurrying and self.hurries:
            self._calls.hurry_later()

    @property
    def hurries(self) -> bool:
        """Return whether the parent is to get what is here, before the rest."""
        return not self.recorded and self.relay.hurries

    @property
    def owes(self) -> bool:
        """Return whether a parent will ask for results that it has not been given."""
        return self.relay.owes

    @property
    def idle(self) -> bool:
        """Return whether it has all results, waits for no child and has no segment: nothing is to be done at its end."""
        return self.relay.state is COMPLETE and not self._hops and not isinstance(self.packed, SharedCall)

    def end(self, tell: bool = True) -> None:
        """Forget the call: its caller gave up, or has all results. ``tell`` the children for whose results it waits."""
        if self.request is not None and self.relay.missing:
            self.request.cancel()
        with self._lock:
            instructions = self.relay.end()
        if isinstance(self.packed, SharedCall):
            self.packed.close()
            self._opened = None
        self._carry_out(instructions, tell)

    def _carry_out(self, instructions: Sequence[Instruction], tell: bool = True) -> None:
        asks: list[AskChild] = []
        for instruction in instructions:
            match instruction:
                case AskChild():
                    asks.append(instruction)
                case AnswerParent(parent, results, more, start):
                    self._calls.answer(self, parent, results, more, start)
                case LeaveParent(parent):
                    if isinstance(parent, ServerCall):
                        parent.finish()
                case RefuseParent(parent):
                    parent.fail(RpcCancelledError(f"the call of {self.head.name} is over"))
                case ForgetCall(heads):
                    if heads:
                        self._forget(heads, tell)
        if asks:
            self._ask(asks)

    # -- this worker's part

    def capture(self) -> None:
        """Copy what may be sent again, to children that are adopted: its arrays may change from now on."""
        self._opened, self.packed = self.packed, self.packed.captured()
        if self.parts:
            own = self.head.subtree[0].place if self.head.subtree else -1
            self.parts = {index: part if index == own else part.captured() for index, part in self.parts.items()}

    def open(self) -> tuple[Any, list[Any]] | None:
        """Return the call, unpickled, and this worker's parts of scattered arguments; ``None`` if the call is over."""
        if self.relay.state is ENDED:
            return None
        codec = self._agent.codec
        parts = codec.open_content(self.parts[self.head.subtree[0].place]) if self.head.parts else []
        opened, self._opened = self._opened or self.packed, None
        content = opened.content() if isinstance(opened, SharedCall) else opened
        return codec.open_content(content), parts

    def own(self, value: Any) -> None:
        """Take the result of this worker's part. In the thread and context of the code that made it."""
        result = NONE if value is None else self._calls.pack_result(self.head.caller, value)
        result = with_warnings(result, self.request, self.agent.number)
        with self._lock:
            instructions = self.relay.own(result)
        if instructions:  # in the context where the result was made
            self._carry_out(instructions)
        elif not self._calls.hurrying and self.hurries:
            self._calls.hurry_later()

    def own_failed(self, error: BaseException) -> None:
        """Take an exception as the result of this worker's part."""
        result = with_warnings(self._calls.pack_failed(error), self.request, self.agent.number)
        self.feed(self.relay.own, result)

    def waiting(self) -> Sequence[object]:
        """Return the caller's futures, or the request of the parent."""
        return [self.relay.parent] if self.sink is None else self.sink.futures()

    # -- parents

    def hurry(self) -> None:
        """Give the parent what is here, if it waits and lacks anything."""
        if self.hurries:
            self.feed(self.relay.hurry)

    def hurry_from_now(self) -> None:
        """Give the parent what is here, as it comes, also if profiles record the call: it will soon give up."""
        self.recorded = False
        self.hurry()

    def asked(self, parent: Any, held: int) -> None:
        """Take a request of a parent for results."""
        self.feed(self.relay.ask, parent, held)

    def worker_lost(self, number: int) -> None:
        """Note that a worker is lost; it may be the parent."""
        parent = self.relay.parent
        if isinstance(parent, ServerCall) and parent.peer.number == number:
            self.feed(self.relay.parent_lost, parent)

    # -- the caller's futures (``core.futures.Canceller``)

    def cancel(self, future: Any) -> bool:
        """Give the call up at its caller."""
        return self._calls.cancel(self)
