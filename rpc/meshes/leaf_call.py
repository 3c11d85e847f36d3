"""``LeafCall``: one mesh call at a worker that has no other worker below it. It runs its part, and keeps the result.

Most workers of a mesh are such leaves. Their life is the one of ``relaying.py``, without children: a leaf is asked, gives its
result, and is asked again if its parent is lost or its connection breaks. So it needs none of what passes a call on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ...base.errors import RpcCancelledError
from ..wire.bundle import NONE, Content
from .relaying import ENDED, RELAY_STEPS, UNASKED, WORKING, RelayAction, RelayEvent
from .warned_result import with_warnings

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from ..agent import Agent
    from ..calls.server_call import ServerCall
    from .answers import GivenAnswer

Step: TypeAlias = (
    "tuple[Sequence[RelayAction], ServerCall | None, Content | None]"  # a parent that waits no more, result
)


class LeafOwner(Protocol):
    """Mesh calls of the agent (``MeshCalls``), as a leaf sees them."""

    agent: Agent
    lock: threading.Lock

    def answer_with(self, call: Any, parent: ServerCall, place: int, result: Content) -> None:
        """Give a parent the one result that it lacks.

        Args:
            call: the mesh call.
            parent: the request of the worker that asked.
            place: in the mesh of the worker whose result it is.
            result: the result.
        """
        ...

    def pack_result(self, caller: int, value: Any) -> Content:
        """Return a result for the worker of number ``caller``, captured; an error if it cannot be sent."""
        ...

    def pack_failed(self, error: BaseException) -> Content:
        """Return an error as the result of a worker."""
        ...


class LeafCall:
    """A mesh call at a worker that only runs its own part.

    Args:
        calls: the mesh calls of the agent.
        caller: number of the worker that made it.
        place: of this worker in the mesh.
        name: of the function, for people.
        call: the call, packed.
        parts: this worker's parts of scattered arguments, packed together; ``None`` if there are none.
        request: the request that brought it, which waits for the result.

    Attributes:
        agent: the agent.
        idle: it has its result: nothing is to be done at its end.
        answers: given to parents, with tensors.
    """

    __slots__ = (
        "_call", "_caller", "_calls", "_name", "_parent", "_parts", "_place", "_request", "_result", "_state", "agent",
        "answers", "idle",
    )  # fmt: skip

    def __init__(
        self,
        calls: LeafOwner,
        caller: int,
        place: int,
        name: str,
        call: Content,
        parts: Content | None,
        request: ServerCall,
    ) -> None:
        self._calls = calls
        self.agent = calls.agent
        self._caller = caller
        self._place = place
        self._name = name
        self._call: Content | None = call
        self._parts = parts
        self._request = request
        self._parent: ServerCall | None = request
        self._result: Content | None = None
        self._state = WORKING
        self.idle = False
        self.answers: list[GivenAnswer] = []

    @property
    def owes(self) -> bool:
        """Return whether another parent will ask for its result, because the first one is lost."""
        return self._state is UNASKED

    # -- its part

    def open(self) -> tuple[Any, list[Any]] | None:
        """Return the call, unpickled, and the parts of scattered arguments, once; ``None`` if it is over."""
        codec, call, parts = self.agent.codec, self._call, self._parts
        self._call = self._parts = None
        if call is None or self._state is ENDED:
            return None
        given = codec.open_content(parts) if parts is not None else []
        return codec.open_content(call), given

    def own(self, value: Any) -> None:
        """Take the result of its part. In the thread and context of the code that made it."""
        self._complete(NONE if value is None else self._calls.pack_result(self._caller, value))

    def own_failed(self, error: BaseException) -> None:
        """Take an exception as the result of its part."""
        self._complete(self._calls.pack_failed(error))

    def _complete(self, result: Content) -> None:
        if self._request.warnings:
            result = with_warnings(result, self._request, self.agent.number)
        with self._calls.lock:
            if self._state is not ENDED:
                self._result, self.idle = result, True
            step = self._step(RelayEvent.LAST)
        self._carry_out(*step)

    # -- parents

    def asked(self, parent: ServerCall, held: int) -> None:
        """Take a request of a parent, which may be another one than before. ``held`` is 0: there is one result."""
        with self._calls.lock:
            former, self._parent = self._parent, parent
            step = self._step(RelayEvent.ASK)
        if former is not None:
            former.finish()
        self._carry_out(*step)

    def worker_lost(self, number: int) -> None:
        """Note that a worker is lost; it may be the parent."""
        with self._calls.lock:
            if (parent := self._parent) is None or parent.peer.number != number:
                return
            step = self._step(RelayEvent.PARENT_LOST)
        self._carry_out(*step)

    def redialed(self, number: int, session: object) -> None:
        """Do nothing: it has asked no other worker."""

    def hurry(self) -> None:
        """Do nothing: it has no result that could leave before the last."""

    def end(self, tell: bool = True) -> None:
        """Forget the call: its caller gave up, or has all results."""
        if not self.idle:
            self._request.cancel()
        with self._calls.lock:
            step = self._step(RelayEvent.END)
        self._call = self._parts = None
        self._carry_out(*step)

    def _step(self, event: RelayEvent) -> Step:
        """Change the state; return the instructions, and the parent if it waits no more. Lock held."""
        self._state, actions = RELAY_STEPS[self._state, event]
        result = self._result
        if not actions:
            return actions, None, result
        if self._state is ENDED:
            self._result = None
        parent, self._parent = self._parent, None
        return actions, parent, result

    def _carry_out(self, actions: Sequence[RelayAction], parent: ServerCall | None, result: Content | None) -> None:
        for action in actions:
            if action is RelayAction.FORGET or parent is None:
                continue
            if action is RelayAction.LEAVE:
                parent.finish()
            elif result is not None and action is RelayAction.ANSWER:
                self._calls.answer_with(self, parent, self._place, result)
            else:
                parent.fail(RpcCancelledError(f"the call of {self._name} is over"))
