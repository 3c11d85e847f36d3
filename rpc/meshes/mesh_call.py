"""``MeshCall``: one mesh call at one worker. It drives the state machine: asks children, and answers the parent."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ...base.errors import AgentClosedError, RpcCancelledError, RpcError, RpcTimeoutError
from ...core.extend import profiles, record_call
from ...core.shared_memory import SharedMemoryError
from ..call_states import ANSWERED_CALL
from ..calls.server_call import ServerCall
from ..functions.calling import text_of
from ..links.link import LinkState
from ..wire.bundle import BUNDLE_FLAGS, NONE, Bundle, Content, join
from ..wire.header import Flag
from ..wire.messages import REPEATED, Method
from .alike_bodies import AlikeBodies
from .heads import RequestHead, decode_answer
from .hop import Hop
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
from .shared_call import SharedCall, shares_memory
from .warned_result import open_warnings, with_warnings

if TYPE_CHECKING:
    from ...core.futures import Driver, Future
    from ..agent import Agent
    from ..calls.caller import Prepared
    from ..calls.dispatch import PendingCall
    from ..links.peer import Peer
    from .answers import GivenAnswer
    from .sink import Sink
    from .tree import Member, Subtree

Key = tuple[int, int]  # number of the caller, id of the call there
REQUEST_FLAGS = BUNDLE_FLAGS | Flag.KEEP
NEXT_REQUEST_SECONDS = 0.1  # after a request to a child found no connection, until the next
NO_ADOPTION = (RpcTimeoutError, RpcCancelledError, AgentClosedError)  # errors that the rest of the subtree has, too


class Owner(Protocol):
    """Mesh calls of the agent (``MeshCalls``), as one of them sees them."""

    agent: Agent
    apart: set[int]  # workers that cannot open this one's segments
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

    def over(self, head: RequestHead) -> int:
        """Return the id below which all calls of a call's caller are over."""
        ...

    def cancel(self, call: MeshCall) -> bool:
        """Give up a call that is made here; return False if it was over."""
        ...

    def tell_end(self, number: int, key: Key) -> None:
        """Tell a worker that a call is given up."""
        ...

    def pack_failed(self, error: BaseException) -> Content:
        """Return an error as the result of a worker."""
        ...

    def pack_result(self, caller: int, value: Any) -> Content:
        """Return a result for the worker of number ``caller``, captured; an error if it cannot be sent."""
        ...


class MeshCall:
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
        self._calls = calls
        self.agent = self._agent = calls.agent
        self.head = head
        self.relay = relay
        self._call = call
        self._opened: Content | SharedCall | None = None  # what this worker's part gets, if ``_call`` is a copy
        self._parts = parts
        self.deadline = deadline
        self.context = context
        self.recorded = bool(context.run(profiles.get))
        self.request: ServerCall | None = None
        self.sink: Sink | None = None
        self.answers: list[GivenAnswer] = []
        self._given = 0  # results that the sink has
        self._hops: dict[int, Hop] = {}
        self._repeated: dict[int, dict[int, Any]] = {}  # by child: note of the requests that repeat the first one
        self._joined: bytes | None = None  # the call, as in the messages to all children
        self._strangers: dict[int, float] = {}  # until when this worker waits to hear of a child that joins
        self._lock = threading.Lock()  # guards the machine and the requests; never held while a message is sent

    @property
    def key(self) -> Key:
        """Number of its caller, and its id there."""
        return self.head.caller, self.head.id

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
    def idle(self) -> bool:
        """Return whether it has all results, waits for no child and has no segment: nothing is to be done at its end."""
        return self.relay.state is COMPLETE and not self._hops and not isinstance(self._call, SharedCall)

    def end(self, tell: bool = True) -> None:
        """Forget the call: its caller gave up, or has all results. ``tell`` the children for whose results it waits."""
        if self.request is not None and self.relay.missing:
            self.request.cancel()
        with self._lock:
            instructions = self.relay.end()
        if isinstance(self._call, SharedCall):
            self._call.close()
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

    # -- children

    def _ask(self, asks: Sequence[AskChild]) -> None:
        """Send requests to children; all are made before the first leaves (``Caller.send_all``)."""
        agent, left = self._agent, 0.0
        if self.deadline and (left := self.deadline - agent.timers.program.now()) <= 0.0:
            for subtree, _ in asks:
                self._child_failed(subtree[0].number, RpcTimeoutError("its deadline has passed"))
            return
        over = self._calls.over(self.head)
        asked: list[Prepared] = []
        for subtree, held in self._ask_alike(asks, left, over, asked):
            if subtree[0].number not in agent.peers:
                self._ask_when_known(subtree[0].number)
                continue
            hop, problem = Hop(self, subtree), None
            with self._lock:
                self._hops[hop.head] = hop
            peer = agent.peers.by_number[hop.head]
            try:
                body = self._body(peer, subtree, held, over)
                request = self._begin(peer, body, left, hop, asked, None if held else self._repeated.get(hop.head))
                if request.attached.notes and not held:
                    self._repeated.setdefault(hop.head, {REPEATED: request.attached.notes})
                hop.request = None if hop.done() else request
            except Exception as error:
                problem = error
            if problem is not None:
                hop.try_finish(None, problem)
        agent.caller.send_all(asked)
        for call, peer, _ in asked:
            if call.session is not (now := peer.link.dialed) and not call.done() and peer.linked:
                self.redialed(peer.number, now)  # its session broke before the call was noted

    def _ask_alike(self, asks: Sequence[AskChild], left: float, over: int, asked: list[Prepared]) -> Sequence[AskChild]:
        """Make small requests that differ in their receivers only, if no interceptor has to see them; return the other asks."""
        peers, caller = self._agent.peers.by_number, self._agent.caller
        if len(asks) == 1 or not self._join() or profiles.get() or not caller.sends_packed():
            return asks
        bodies, others, hops = AlikeBodies(self.head, over, self._join()), [], {}
        for ask in asks:
            number, peer = ask.subtree[0].number, peers.get(ask.subtree[0].number)
            if ask.held or peer is None or peer.link.state is not LinkState.OPEN or number in self._repeated:
                others.append(ask)
                continue
            hop = hops[number] = Hop(self, ask.subtree)
            made = caller.begin_packed(peer, Method.MESH, REQUEST_FLAGS, bodies.of(ask.subtree), left, hop)
            hop.request = made[0]
            asked.append(made)
        with self._lock:
            self._hops.update(hops)
        return others

    def _join(self) -> bytes:
        """Return the call as bytes, as in the messages to all children; empty if it is long, or something is beside it."""
        if self._joined is None:
            shared = isinstance(self._call, SharedCall) or self.head.parts
            self._joined = b"" if shared else join((self._call,))
        return self._joined

    def _begin(
        self,
        peer: Peer,
        body: Bundle,
        left: float,
        hop: Hop,
        asked: list[Prepared],
        notes: dict[int, Any] | None,
    ) -> PendingCall:
        """Make a request to a child, which ``_ask`` sends later. Profiles record it, with what returns from the child."""
        begin = partial(
            self.agent.caller.begin, peer, Method.MESH, body, left, hop, notes=notes, future=hop, later=asked
        )
        if not profiles.get():
            return begin()
        made: list[PendingCall] = []

        def request() -> Future[Any]:
            made.append(begin())
            return hop

        record_call(f"mesh#{self.head.name}({self.agent.name} -> {peer.info.name})", request)
        return made[0]

    def _ask_when_known(self, head: int) -> None:
        """Ask a child that joins the group later: the caller has heard of it, and this worker has not yet."""
        agent = self._agent
        now, until = agent.timers.now(), self._strangers.get(head)
        if until is None:
            until = self._strangers[head] = now + agent.options.reconnect_timeout
        if now < until:
            agent.timers.after(NEXT_REQUEST_SECONDS, self.feed, partial(self.relay.broken, head))
            return
        text = f"{self.head.name}() on worker number {head}"
        self._child_failed(head, RpcError(f"{text} was not sent: worker {agent.name!r} has not heard of that worker"))

    def _body(self, peer: Peer, subtree: Subtree, held: int, over: int) -> Bundle:
        encode, call = self.head.encode, self._call
        if held:  # it has the call
            return Bundle(encode(subtree, over, held), (), True)
        parts = [self._parts[member.place] for member in subtree] if self.head.parts else []
        if isinstance(call, SharedCall):
            if peer.number not in self._calls.apart and shares_memory(self._agent, peer):
                return Bundle(encode(subtree, over, 0, call.encode()), [call.rest, *parts], True)
            call = call.content()
        elif not parts:
            return Bundle(encode(subtree, over), (call,), True, self._join())
        return Bundle(encode(subtree, over), [call, *parts], True)

    def text(self, member: Member) -> str:
        """Return what errors say of the call on a worker."""
        number, peers = member.number, self._agent.peers
        return text_of(self.head.name, peers.name(number) if number in peers else f"number {number}")

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
                self._child_failed(hop.head, error)
            return
        if bundle is None:
            results, more = [(hop.subtree[0].place, NONE)], False
        else:
            indexes, more = decode_answer(bundle.head)
            results = list(zip(indexes, open_warnings(bundle.contents, len(indexes))))
        self.feed(self.relay.answered, hop.head, results, more)

    def _child_failed(self, head: int, error: BaseException) -> None:
        whole = isinstance(error, NO_ADOPTION)
        make = partial(self._member_failed, error) if whole else lambda member: self._calls.pack_failed(error)
        self.feed(self.relay.failed, head, make, not whole)

    def _member_failed(self, error: BaseException, member: Member) -> Content:
        """Return the error that a member has because a worker between has failed."""
        text = self.text(member)
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

    # -- this worker's part

    def driver(self) -> Driver | None:
        """Return what lets a thread that waits for the results read the answer of a child itself."""
        with self._lock:
            return next((hop.driver for hop in self._hops.values() if hop.driver is not None), None)

    def capture(self) -> None:
        """Copy what may be sent again, to children that are adopted: its arrays may change from now on."""
        self._opened, self._call = self._call, self._call.captured()
        if self._parts:
            own = self.head.subtree[0].place if self.head.subtree else -1
            self._parts = {index: part if index == own else part.captured() for index, part in self._parts.items()}

    def open(self) -> tuple[Any, list[Any]] | None:
        """Return the call, unpickled, and this worker's parts of scattered arguments; ``None`` if the call is over."""
        if self.relay.state is ENDED:
            return None
        codec = self._agent.codec
        parts = codec.open_content(self._parts[self.head.subtree[0].place]) if self.head.parts else []
        opened, self._opened = self._opened or self._call, None
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
