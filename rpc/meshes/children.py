"""``MeshChildren``: the children of one worker in a mesh call: they are asked, answer, or are lost; then theirs are adopted."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ...base.errors import AgentClosedError, RpcCancelledError, RpcError, RpcTimeoutError
from ...base.words import abridged
from ...core.shared_memory import SharedMemoryError
from ..call_states import ANSWERED_CALL
from ..functions.calling import text_of
from ..wire.bundle import NONE
from .doubts import Doubts
from .heads import decode_answer
from .hop import Hop
from .warned_result import open_warnings

if TYPE_CHECKING:
    from ...core.futures import Driver
    from ..agent import Agent
    from ..calls.caller import Prepared
    from ..wire.bundle import Bundle, Content
    from .child_requests import ChildRequests
    from .heads import RequestHead
    from .relaying import AskChild, Relaying
    from .shared_call import SharedCall
    from .tree import Member, Subtree

Key = tuple[int, int]  # number of the caller, id of the call there
NEXT_REQUEST_SECONDS = 0.1  # after a request to a child found no connection, until the next
MOST_BELOW = 6  # of workers, in an error
NO_ADOPTION = (RpcTimeoutError, RpcCancelledError, AgentClosedError)  # errors that the rest of the subtree has, too


class ChildrenOwner(Protocol):
    """Mesh calls of the agent (``MeshCalls``), as requests to children see them."""

    agent: Agent
    apart: set[int]  # workers that cannot open this one's segments

    def new_requests(self) -> ChildRequests:
        """Return what makes the requests of one call."""
        ...

    def over(self, head: RequestHead) -> int:
        """Return the id below which all calls of a call's caller are over."""
        ...

    def doubt_after(self, seconds: float) -> None:
        """Let ``doubt_children`` of all calls be called after so many seconds."""
        ...

    def tell_end(self, number: int, key: Key) -> None:
        """Tell a worker that a call is given up."""
        ...

    def pack_failed(self, error: BaseException) -> Content:
        """Return an error as the result of a worker."""
        ...


class MeshChildren:
    """Children of one worker in a mesh call, which ``MeshCall`` completes: requests to them, and their answers. Any thread.

    Args:
        calls: the mesh calls of the agent.
        head: of the request that brought the call, or that a caller makes of it.
        relay: its state machine.
        packed: the call.
        parts: parts of scattered arguments, by the place in the mesh of the worker that gets them.
        deadline: time after which no worker waits for it, by the clock of the program; 0 for never.
    """

    def __init__(
        self,
        calls: ChildrenOwner,
        head: RequestHead,
        relay: Relaying[Content],
        packed: Content | SharedCall,
        parts: Mapping[int, Content],
        deadline: float,
    ) -> None:
        self._calls = calls
        self.agent = self._agent = calls.agent
        self.head, self.relay, self.deadline = head, relay, deadline
        self.packed, self.parts = packed, parts
        self._hops: dict[int, Hop] = {}
        self._requests = calls.new_requests()
        self._doubts = Doubts(calls.agent)
        self._strangers: dict[int, float] = {}  # until when this worker waits to hear of a child that joins
        self._lock = threading.Lock()  # guards the machine and the requests; never held while a message is sent

    @property
    def key(self) -> Key:
        """Number of its caller, and its id there."""
        return self.head.caller, self.head.id

    def feed(self, event: Callable[..., Any], *args: Any) -> None:
        """Give an event to the machine, and carry out its instructions."""
        raise NotImplementedError

    def waiting(self) -> Sequence[object]:
        """Return the caller's futures, or the request of the parent."""
        raise NotImplementedError

    def _ask(self, asks: Sequence[AskChild]) -> None:
        """Send requests to children; all are made before the first leaves (``Caller.send_all``)."""
        agent, left = self._agent, 0.0
        if self.deadline and (left := self.deadline - agent.timers.program.now()) <= 0.0:
            for subtree, _ in asks:
                self._child_failed(subtree, RpcTimeoutError("its deadline has passed"))
            return
        if self._hops:
            self._leave_former(asks)
        if left and not self.head.folds and (seconds := self._doubts.begin(asks, left)) < math.inf:
            self._calls.doubt_after(seconds)
        over = self._calls.over(self.head)
        asked: list[Prepared] = []
        hops, others = self._requests.make_alike(self, asks, left, over, asked, partial(Hop, self))
        with self._lock:
            self._hops.update(hops)
        for subtree, held in others:
            if subtree[0].number in agent.peers:
                self._ask_one(Hop(self, subtree), held, left, over, asked)
            else:
                self._ask_when_known(subtree)
        agent.caller.send_all(asked)
        for call, peer, _ in asked:
            if call.session is not (now := peer.link.dialed) and not call.done() and peer.linked:
                self.redialed(peer.number, now)  # its session broke before the call was noted

    def _ask_one(self, hop: Hop, held: int, left: float, over: int, asked: list[Prepared]) -> None:
        with self._lock:
            self._hops[hop.head] = hop
        problem: Exception | None = None
        try:
            self._requests.make(self, hop, held, left, over, asked)
        except Exception as error:
            problem = error
        if problem is not None:
            hop.try_finish(None, problem)

    def _leave_former(self, asks: Sequence[AskChild]) -> None:
        """Give up requests to children that are asked again."""
        with self._lock:
            former = [self._hops.pop(subtree[0].number, None) for subtree, _ in asks]
        for hop in former:
            if hop is not None:
                self._give_up(hop, f"the child is asked again for its part of {self.head.name}")

    def _ask_when_known(self, subtree: Subtree) -> None:
        """Ask a child that joins the group later: the caller has heard of it, and this worker has not yet."""
        agent, head = self._agent, subtree[0].number
        now, until = agent.timers.now(), self._strangers.get(head)
        if until is None:
            until = self._strangers[head] = now + agent.options.reconnect_timeout
        if now < until:
            agent.timers.after(NEXT_REQUEST_SECONDS, self.feed, partial(self.relay.broken, head))
            return
        text = f"{self.head.name}() on worker number {head}"
        self._child_failed(
            subtree, RpcError(f"{text} was not sent: worker {agent.name!r} has not heard of that worker")
        )

    def doubt_children(self) -> float:
        """Ask the children that say nothing whether they live, if it is time; return the seconds until that is due again."""
        with self._lock:
            hops = list(self._hops.values())
        return self._doubts.ask(hops, self.deadline, self._bypass)

    def _bypass(self, hop: Hop) -> None:
        if self._hops.get(hop.head) is hop:
            self.feed(self.relay.bypass, hop.head)

    def text(self, member: Member) -> str:
        """Return what errors say of the call on a worker."""
        return text_of(self.head.name, self._name(member))

    def _name(self, member: Member) -> str:
        number, peers = member.number, self._agent.peers
        return peers.name(number) if number in peers else f"number {number}"

    def answered(self, hop: Hop, bundle: Bundle | None, error: BaseException | None) -> None:
        """Take the answer to a request to a child. Any thread; runs no user code.

        Args:
            hop: the request.
            bundle: the answer, if there is no error; ``None`` if that is the child's own result, and the only one.
            error: why there is no answer.
        """
        with self._lock:
            if self._hops.get(hop.head) is not hop:
                return  # it was asked again, or given up
            del self._hops[hop.head]
        if isinstance(error, SharedMemoryError):  # it gets the arrays in the message
            self._calls.apart.add(hop.head)
            self.feed(self.relay.broken, hop.head)
            return
        if error is not None:
            unanswered = hop.request is None or hop.request.state is not ANSWERED_CALL
            if unanswered and type(error) is RpcError:  # no connection: the child may be lost, which is known soon
                self._agent.timers.after(NEXT_REQUEST_SECONDS, self.feed, self.relay.broken, hop.head)
            else:
                self._child_failed(hop.subtree, error)
            return
        if bundle is None:
            results, more = [(hop.subtree[0].place, NONE)], False
        else:
            indexes, more = decode_answer(bundle.head)
            results = list(zip(indexes, open_warnings(bundle.contents, len(indexes))))
        self.feed(self.relay.answered, hop.head, results, more)

    def _child_failed(self, subtree: Subtree, error: BaseException) -> None:
        whole = isinstance(error, NO_ADOPTION)
        make = partial(self._member_failed, error, subtree) if whole else lambda member: self._calls.pack_failed(error)
        self.feed(self.relay.failed, subtree[0].number, make, not whole)

    def _others(self, subtree: Subtree, member: Member) -> str:
        """Return what an error of a member of a subtree says of the workers whose fault it may be, too."""
        if member is not subtree[0]:
            return f" (passed on by worker {self._name(subtree[0])!r})"
        below = subtree[1:] if self.head.folds else ()  # their results would have come with that of the child
        names = abridged([repr(self._name(each)) for each in below], MOST_BELOW)
        return f", or on one below it ({names})," if below else ""

    def _member_failed(self, error: BaseException, subtree: Subtree, member: Member) -> Content:
        """Return the error that a member of a subtree has because a worker between has failed."""
        text = self.text(member) + self._others(subtree, member)
        if isinstance(error, RpcTimeoutError):
            error = RpcTimeoutError(f"{text} got no answer in time; give it longer with timeout=")
        elif isinstance(error, RpcCancelledError):
            error = RpcCancelledError(f"{text} was cancelled")
        return self._calls.pack_failed(error)

    def redialed(self, number: int, session: object) -> None:
        """Ask a child again whose request went by a former session."""
        with self._lock:
            hop = self._hops.get(number)
            request = None if hop is None else hop.request
            if hop is None or request is None or request.session in (None, session):
                return
            del self._hops[number]
        self._give_up(hop, f"the connection broke during {request.what}")
        self.feed(self.relay.broken, number)

    def _forget(self, heads: Sequence[int], tell: bool) -> None:
        with self._lock:
            hops = [self._hops.pop(head, None) for head in heads]
        for hop in hops:
            if hop is not None:
                self._give_up(hop, f"the call of {self.head.name} is over")
        for head in heads if tell else ():
            self._calls.tell_end(head, self.key)

    def _give_up(self, hop: Hop, reason: str) -> None:
        if (request := hop.request) is not None:
            self._agent.caller.give_up(request, RpcCancelledError(reason))

    def driver(self) -> Driver | None:
        """Return what lets a thread that waits for the results read the answer of a child itself."""
        with self._lock:
            return next((hop.driver for hop in self._hops.values() if hop.driver is not None), None)
