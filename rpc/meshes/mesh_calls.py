"""``MeshCalls``: the mesh calls in which one agent has a part, from their requests to their ends."""

from __future__ import annotations

import contextvars
import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcCancelledError, RpcError
from ...base.worker_reports import last_events
from ...core.shared_memory import SharedMemoryError
from ..links.link import LinkState
from ..wire.bundle import Bundle, Content, open_bundle
from ..wire.messages import NO_ATTACHMENTS, Method, Topic
from .answering import MeshAnswers
from .answers import lose_answers
from .child_requests import ChildRequests
from .heads import (
    COUNT_SPAN,
    END,
    OF_LEAF,
    RequestHead,
    decode_message,
    encode_end,
    encode_release,
    key_of,
    open_leaf_request,
)
from .leaf_call import LeafCall
from .mesh_call import MeshCall
from .own_part import run_part
from .relaying import Relaying
from .shared_call import SharedCall, mapping_host, open_shared, share, whole_call
from .tree import Subtree, children, split

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.server_call import ServerCall
    from ..lanes.session import Session
    from ..links.peer import Peer
    from .children import Key
    from .sink import Sink

HURRY_SECONDS = 0.05  # a parent that waits longer gets the results that are here
HURRY_SHARE = (
    0.8  # of the time-out, after which a parent gets the results that are here even if profiles record the call
)
RELEASE_SECONDS = 1.0  # after a call that no other follows, until its workers may forget its results
FEWEST_SHARING = 3  # workers for which arrays are put into a segment; for fewer a message costs as little
NUMBER = attrgetter("number")  # of a member
REMEMBERED_ENDS = 4096  # of calls that were given up: the news may overtake the request


class MeshCalls(MeshAnswers):
    """Part of one agent in mesh calls.

    Args:
        agent: the agent.
    """

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self._served: dict[int, dict[int, MeshCall | LeafCall]] = {}  # by the caller and the id, with a part here
        self._over: dict[int, int] = {}  # by the caller: all ids below are over
        self._given_up: OrderedDict[Key, None] = OrderedDict()
        self._made: dict[int, MeshCall] = {}  # made here and under way, the oldest first
        self._ids = itertools.count()
        self._next = 0
        self._told: dict[int, None] = {}  # workers that may keep results of calls made here
        self.hurrying = self._releases = False  # whether a timer is set
        self._doubts = agent.timers.alarm(self._doubt)
        self._ending = False  # this worker shuts down: no call is over for long
        self.apart: set[int] = set()  # workers that cannot open this one's segments
        launched = last_events()
        self._noted = launched.calls if launched is not None else None  # takes this worker's parts, for the launcher
        agent.server.serve(Method.MESH, self._serve, early=self._arrived)
        agent.control.on(Topic.MESH, self._on_message)
        agent.losses.on_lost.append(self._worker_lost)
        agent.sessions.on_dialed.append(self._redialed)
        agent.open_counts.append(self._owed)
        agent.on_ending.append(self._shutdown_begun)
        agent.on_close.append(self._close)

    # -- calls that this worker makes

    def begin(
        self,
        subtrees: Sequence[Subtree],
        call: Content,
        parts: dict[int, Content],
        seconds: float,
        name: str,
        sink: Sink,
        folds: bool = False,
    ) -> None:
        """Send a call to the workers of some subtrees.

        Args:
            subtrees: the workers.
            call: the call, packed. What is sent later, to workers that are adopted, is a copy that is made now.
            parts: parts of scattered arguments, by the place in the mesh.
            seconds: its time-out; 0 for none.
            name: of the function, for people.
            sink: takes the results.
            folds: results are added up on the way.
        """
        self.agent.state.check_open()
        clock = self.agent.timers.program
        with self.lock:
            number = next(self._ids)
            self._next = number + 1
            head = RequestHead(self.agent.number, number, 0, 0, folds, bool(parts), name, ())
            made = MeshCall(
                self,
                head,
                Relaying(None, subtrees, folds),
                self._shared(subtrees, call) or call,
                parts,
                clock.now() + seconds if seconds else 0.0,
                contextvars.copy_context(),
            )
            self._made[number] = made
            self._told.update(dict.fromkeys(map(NUMBER, itertools.chain(*subtrees))))
        made.sink, sink.future.canceller = sink, made  # before it can be over: they would keep each other then
        made.feed(made.relay.ask, sink, 0)
        made.feed(made.relay.begin)
        made.capture()
        sink.future.driver = made.driver()
        if sink.future.done():
            sink.future.driver = None  # it holds a session

    def _shared(self, subtrees: Sequence[Subtree], call: Content) -> SharedCall | None:
        """Return the call with its large arrays in a segment, if several workers of this machine get it."""
        if sum(map(len, subtrees)) < FEWEST_SHARING or not call.tensors:
            return None
        hosts = [self.agent.peers.at(subtree[0].number).host for subtree in subtrees]
        return share(call) if mapping_host(self.agent) in hosts else None

    def new_requests(self) -> ChildRequests:
        """Return what makes the requests of one call to children."""
        return ChildRequests(self.agent, self.apart)

    def over(self, head: RequestHead) -> int:
        """Return the id below which all calls of a call's caller are over, for a request of it."""
        if head.caller != self.agent.number:
            return self._over.get(head.caller, 0)
        with self.lock:
            return next(iter(self._made), self._next)

    def cancel(self, call: MeshCall) -> bool:
        """Give up a call that is made here; return False if it was over."""
        if self._made.get(call.head.id) is not call:
            return False
        fail = self.pack_failed(RpcCancelledError(f"the call of {call.head.name} on a mesh was cancelled"))
        missing = sorted(call.relay.missing)
        self._finish(call)
        if call.sink is not None:
            call.sink.add([(place, fail) for place in missing])
        return True

    def _finish(self, call: MeshCall) -> None:
        """Note that a call that was made here is over; let its workers forget the results."""
        with self.lock:
            self._made.pop(call.head.id, None)
            begins, self._releases = not self._releases, True
        call.end()
        if self._ending:
            self._release_made()
        elif begins:
            self.agent.timers.after(RELEASE_SECONDS, self._release_all)

    def _owed(self) -> int:
        """Return for how many calls another worker will ask, of which no request is here now."""
        with self.lock:
            return sum(call.owes for served in self._served.values() for call in served.values())

    def _shutdown_begun(self) -> None:
        """Let workers forget results at once: references in them are no leak of the job's."""
        self._ending = True
        self._release_made()

    def _release_all(self) -> None:
        with self.lock:
            self._releases = bool(self._made)
        if self._releases:
            self.agent.timers.after(RELEASE_SECONDS, self._release_all)
        self._release_made()

    def _release_made(self) -> None:
        """Tell workers which calls that were made here are over."""
        with self.lock:
            over = next(iter(self._made), self._next)
            numbers = list(self._told)
            if not self._made:
                self._told.clear()
        self._tell_over(self.agent.number, over, numbers)

    def _tell_over(self, caller: int, over: int, numbers: Sequence[int]) -> None:
        """Tell workers, over a tree, which calls are over."""
        live = [number for number in numbers if not self.agent.peers.at(number).gone]
        for part in split(live):
            peer = self.agent.peers.at(part[0])
            self.agent.control.post(peer, Topic.MESH, encode_release(caller, over, part))

    # -- requests of other workers

    def _arrived(self, request: ServerCall) -> None:
        """Start a request in the reader's thread, if no interceptor has to see it in a thread of its own."""
        beside = request.attached
        if request.pickled[COUNT_SPAN] == OF_LEAF or request.extras or beside.waits_for or beside.problem:
            self.agent.server.resume(request)
        elif request.start():
            made: MeshCall | LeafCall | None = None
            try:
                made = self._take(request, self.agent.threads.new_context())
            except Exception as error:
                request.fail(error)
            if made is None:
                request.session.flow.used(request.size)
                return
            try:
                self.agent.threads.functions.submit(partial(self._run, made, request))
            except RpcError as error:
                request.session.flow.used(request.size)
                made.own_failed(error)

    def _serve(self, request: ServerCall) -> None:
        """Serve a request in a thread of the pool: pass it on, and run the part of this worker."""
        made: MeshCall | LeafCall | None = None
        if not request.extras and request.attached is NO_ATTACHMENTS and request.pickled[COUNT_SPAN] == OF_LEAF:
            made = self._take_leaf(request)
        if made is None:
            made = self._take(request, None)
        if made is not None:
            run_part(made, request, self._noted)

    def _take_leaf(self, request: ServerCall) -> LeafCall | None:
        """Take a request for this worker alone, as ``_take`` does; return ``None`` if that is to take it."""
        if (asked := open_leaf_request(request.pickled)) is None:
            return None
        caller, number, over, name, place, call, shared = asked
        if shared:
            try:
                call = whole_call(shared, call)
            except (OSError, ValueError):
                return None
        if over > self._over.get(caller, 0):
            self._release(caller, over)
        peer = self.agent.peers.by_number[caller]
        with self.lock:
            calls = self._served.setdefault(caller, {})
            known = number in calls or (caller, number) in self._given_up
            if known or number < self._over.get(caller, 0) or peer.link.state is LinkState.GONE:
                return None
            made = calls[number] = LeafCall(self, caller, place, name, call, None, request)
        request.what, request.kept, request.pickled = name, peer.info, None
        return made

    def _run(self, made: MeshCall | LeafCall, request: ServerCall) -> Any:
        request.session.flow.used(request.size)
        context = made.context.copy() if isinstance(made, MeshCall) else self.agent.threads.new_context()
        context.run(run_part, made, request, self._noted)
        return None if (reading := request.session.reading) is None else reading.linger

    def _take(self, request: ServerCall, context: contextvars.Context | None) -> MeshCall | LeafCall | None:
        """Take a request, and pass it on if it is the first; return the call if its part is to run now.

        Args:
            request: the request.
            context: of the call; ``None`` for the current one, as interceptors leave it when the request is opened.
        """
        quick = request.attached is NO_ATTACHMENTS and not request.extras
        bundle: Bundle = open_bundle(request) if quick else request.open()
        head = RequestHead.decode(bundle.head)
        if head.over > self._over.get(head.caller, 0):
            self._release(head.caller, head.over)
        request.what, request_key = head.name, (head.caller, head.id)
        caller = self.agent.peers.by_number[head.caller]
        request.kept = caller.info
        call: Content | SharedCall | None = bundle.contents[0] if bundle.contents else None
        if head.shared and isinstance(call, Content):
            try:
                call = (whole_call if len(head.subtree) == 1 else open_shared)(head.shared, call)
            except (OSError, ValueError) as error:
                request.fail(SharedMemoryError(f"the arrays of a mesh call cannot be opened: {error}"))
                return None
        with self.lock:
            calls = self._served.setdefault(head.caller, {})
            made = calls.get(head.id)
            over = head.id < self._over.get(head.caller, 0) or request_key in self._given_up or call is None
            # Its calls were dropped: a worker that has not heard of it may still pass one on.
            over = over or caller.link.state is LinkState.GONE
            first = made is None and not over
            if first and call is not None:
                given = bundle.contents[1:]
                if not isinstance(call, SharedCall) and len(head.subtree) == 1:
                    place, parts = head.subtree[0].place, given[0] if head.parts else None
                    made = calls[head.id] = LeafCall(self, head.caller, place, head.name, call, parts, request)
                else:
                    made = calls[head.id] = self._new(head, call, given, request, context)
        if made is None:
            request.fail(RpcCancelledError(f"the call of {head.name} is over"))
            return None
        if not first:
            lose_answers(made.answers, head.held, self.lock, self.agent.codec)
            request.park()
            made.asked(request, head.held)
            return None
        if isinstance(made, MeshCall):
            request.park()
            made.feed(made.relay.begin)
            made.capture()
        return made

    def _new(
        self,
        head: RequestHead,
        call: Content | SharedCall,
        given: Sequence[Content],
        request: ServerCall,
        context: contextvars.Context | None,
    ) -> MeshCall:
        relay: Relaying[Content] = Relaying(head.subtree[0].place, children(head.subtree), head.folds)
        relay.ask(request, head.held)  # gives no instruction: its own result is missing
        parts = dict(zip([member.place for member in head.subtree], given)) if head.parts else {}
        made = MeshCall(self, head, relay, call, parts, request.deadline, context or contextvars.copy_context())
        made.request = request
        if made.recorded and request.deadline:  # before the parent gives up
            self.agent.timers.after(HURRY_SHARE * request.left, made.hurry_from_now)
        return made

    def hurry_later(self) -> None:
        """Give parents what is here, if they still wait for the rest in a while."""
        self.hurrying = True
        self.agent.timers.after(HURRY_SECONDS, self._hurry)

    def _hurry(self) -> None:
        self.hurrying = False
        with self.lock:
            calls = [call for served in self._served.values() for call in served.values()]
        for call in calls:
            call.hurry()

    def doubt_after(self, seconds: float) -> None:
        """Let calls ask, after so many seconds, whether children live that have not answered."""
        self._doubts.set(self.agent.timers.now() + seconds)

    def _doubt(self) -> None:
        with self.lock:
            served = [call for served in self._served.values() for call in served.values()]
            calls = [*self._made.values(), *(call for call in served if isinstance(call, MeshCall))]
        seconds = min((call.doubt_children() for call in calls), default=math.inf)
        if seconds < math.inf:
            self.doubt_after(seconds)

    # -- ends

    def tell_end(self, number: int, key: Key) -> None:
        """Tell a worker that a call is given up."""
        if self.agent.state.closed:
            return
        peer = self.agent.peers.at(number)
        if not peer.gone:
            self.agent.control.post(peer, Topic.MESH, encode_end(*key))

    def _on_message(self, peer: Peer, payload: bytes) -> None:
        kind, caller, number, numbers = decode_message(payload)
        if kind == END:
            self._end(caller, number)
            return
        self._release(caller, number)
        self._tell_over(caller, number, numbers[1:])

    def _end(self, caller: int, number: int) -> None:
        with self.lock:
            made = self._served.get(caller, {}).get(number)
            self._given_up[caller, number] = None
            while len(self._given_up) > REMEMBERED_ENDS:
                self._given_up.popitem(last=False)
        if made is not None:
            made.end()
        else:
            self._drop_waiting(lambda key: key == (caller, number))

    def _drop_waiting(self, condition: Callable[[Key], bool]) -> None:
        """Drop requests that wait for values, by the keys of their calls: no worker needs their results."""
        for request in list(self.agent.server.waiting.copy().values()):
            if request.method == Method.MESH and condition(key_of(request.pickled)) and request.claim():
                request.drop_content()
                request.finish()

    def _release(self, caller: int, over: int) -> None:
        """Forget all calls of a caller below an id."""
        with self.lock:
            self._over[caller] = max(over, self._over.get(caller, 0))
            calls = self._served.get(caller)
            if not calls:
                return
            ended = [calls.pop(number) for number in tuple(calls) if number < over]
        for call in ended:
            if not call.idle:
                call.end(tell=False)

    def _worker_lost(self, peer: Peer) -> None:
        with self.lock:
            ended = self._served.pop(peer.number, {})
            others = [call for calls in self._served.values() for call in calls.values()]
        for call in ended.values():
            call.end(tell=False)
        for call in others:
            call.worker_lost(peer.number)
        self._drop_waiting(lambda key: key[0] == peer.number)

    def _close(self) -> None:
        """Forget the calls of other workers. Those made here fail with their requests."""
        with self.lock:
            ended = [call for calls in self._served.values() for call in calls.values()]
            self._served.clear()
        for call in ended:
            call.end(tell=False)

    def _redialed(self, peer: Peer, session: Session) -> None:
        with self.lock:
            calls = [call for served in self._served.values() for call in served.values()] + list(self._made.values())
        for call in calls:
            call.redialed(peer.number, session)
