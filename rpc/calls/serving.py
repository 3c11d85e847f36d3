"""``Server``: the requests that an agent serves. Each waits for a thread, and is then served or dropped."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...base.errors import RpcError
from ...core.futures import attempt, collect_all
from ..call_states import WAITING
from ..links.link import LinkState
from ..wire.control import decode_ids
from ..wire.messages import Method, Topic
from .handed_on import HandedOn
from .replies import DoneAnswers, Replies
from .server_call import ServerCall

if TYPE_CHECKING:
    from ..lanes.large.landing import Landing
    from ..links.control_channel import ControlChannel
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..state import AgentState
    from ..threads.agent_threads import AgentThreads
    from ..threads.timers import Timers
    from .codec import Codec
    from .handed_on import CallKey

logger = logging.getLogger("telegrad.rpc")
GONE = LinkState.GONE
Handler = Callable[["ServerCall"], None]
Refused = Callable[["ServerCall", BaseException], None]
Early = Callable[["ServerCall"], object]
FindPlace = Callable[[memoryview, int], "Landing | None"]
MOST_AWAITING = 4096  # requests that wait for values without room in their windows; further ones keep their room
LARGEST_AWAITING = 16_384  # bytes of such a request
REMEMBERED = 4096  # latest cancels that are kept, because a cancel may overtake its call


class Server:
    """Requests that one agent serves.

    Args:
        state: the agent's state.
        peers: the workers of the job.
        control: for cancels.
        codec: opens requests and packs answers.
        timers: for deadlines.
        threads: run the handlers.
    """

    def __init__(
        self,
        state: AgentState,
        peers: Peers,
        control: ControlChannel,
        codec: Codec,
        timers: Timers,
        threads: AgentThreads,
    ) -> None:
        self.state = state
        self.peers = peers
        self.codec = codec
        self.timers = timers
        self.clock = timers.program
        self.threads = threads
        self.handlers: dict[int, Handler] = {}
        self.refused: dict[int, Refused] = {}
        self._early: dict[int, Early] = {}
        self.serving: dict[CallKey, ServerCall] = {}  # accepted and not answered
        self.failed: Callable[[BaseException], object] | None = (
            None  # a debugger holds the thread of a function that raised
        )
        self.landings: dict[int, FindPlace] = {}  # by method, where the large piece of a request is to be received
        self.on_cancel: list[Callable[[CallKey], object]] = []  # called in a reader's thread: quick, no user code
        self.accepted = 0
        self.waiting: dict[CallKey, ServerCall] = {}  # not started; the thread that takes one out starts or drops it
        self.handed_on = HandedOn(self.serving, threads.run_later)
        self._cancelled: OrderedDict[CallKey, None] = OrderedDict()  # the latest cancels; their calls may still arrive
        self.control = control
        self.cancellation_lock = threading.Lock()
        self.replies = Replies(codec, timers)
        self.done = DoneAnswers(control, timers, self.waiting)
        control.on(Topic.CANCEL, self._on_cancel)

    def caller_lost(self, peer: Peer) -> None:
        """Cancel the calls of a worker that is gone."""
        for call in list(self.serving.values()):
            if call.sender == peer.number and call.method != Method.MESH:  # another worker may ask for its answer
                call.cancel()

    def serve(
        self,
        method: int,
        handler: Handler,
        refused: Refused | None = None,
        quick: bool = False,
        early: Early | None = None,
    ) -> None:
        """Answer requests of ``method`` with ``handler(call)``.

        Args:
            method: number of the method.
            handler: answers, in a thread for user functions.
            refused: ``refused(call, error)`` is called for a request that arrived and fails before ``handler`` is called.
            quick: ``handler`` runs in the reader's thread: it does not block and runs no user code.
            early: called in the reader's thread, too, with a request that has arrived; it starts the request, or resumes it.
        """
        if quick:
            early = ServerCall.run
        self.handlers[method] = handler
        self._early.pop(method, None)
        if early is not None:
            self._early[method] = early
        if refused is not None:
            self.refused[method] = refused

    def serve_late(self, method: int, ready: Callable[[], object]) -> None:
        """Call ``ready``, which calls ``serve`` for the method, when the first of its requests arrives; any thread.

        If it raises, so does the request.
        """

        def first(call: ServerCall) -> None:
            attempt(ready)
            early = self._early.get(method, self.resume)
            (early if early is not first else self.resume)(call)

        def late(call: ServerCall) -> None:  # it could not be made, or its first request waited for values
            ready()
            self.handlers[method](call)

        self.serve(method, late, early=first)

    def accept(self, call: ServerCall, peer: Peer) -> None:
        """Take a request that arrived. Runs in a reader's thread.

        Args:
            call: the request, decoded.
            peer: its caller.
        """
        call._server, call.peer, call.state, call.cancelled, call._cancellation = self, peer, WAITING, False, None
        call.what, call.warnings, call.kept = "", (), ()
        call.deadline = self.clock.now() + call.timeout if call.timeout else 0.0
        key = (call.session.number, call.call_id)
        if key in self.serving:
            call.session.flow.used(call.size)  # a repetition
            return
        # One statement: a thread that drops it must find it in both.
        self.serving[key] = self.waiting[key] = call
        self.accepted += 1
        if key in self._cancelled:  # the cancel arrived first
            call.drop()
            return
        if call.attached.waits_for:
            self._wait(call)
        elif call.method in self._early:
            self._early[call.method](call)
        else:
            self.resume(call)

    def _wait(self, call: ServerCall) -> None:
        """Let a request start when what it waits for is there. Until then it holds no thread.

        Nor does it hold room in its window: what makes a value that it waits for may have to come by the same session. If many
        or large requests wait, the others keep their room, so that the memory of all has a bound.
        """
        attached = call.attached
        if call.size <= LARGEST_AWAITING and len(self.waiting) <= MOST_AWAITING:
            call.session.flow.used(call.size)
            call.size = 0
        for awaited in attached.awaited:
            awaited.begin(call)
            awaited.future.add_done_callback(lambda done: self.resume(call) if done.exception() is not None else None)
        collect_all(attached.waits_for).add_done_callback(lambda _: self.resume(call))

    def resume(self, call: ServerCall) -> None:
        """Let a request start as soon as a thread is free."""
        try:
            self.threads.functions.submit(call.run)
        except RpcError as error:
            if call.claim():
                if refused := self.refused.get(call.method):
                    refused(call, error)
                call.fail(error)

    # -- cancels

    def _on_cancel(self, peer: Peer, payload: bytes) -> None:
        for call_id in decode_ids(payload):
            self.cancel(peer, call_id)

    def cancel(self, peer: Peer, call_id: int) -> None:
        """Drop a request that its caller has cancelled, even if it has not arrived yet; mark one that has started."""
        key = (peer.number, call_id)
        self._cancelled[key] = None
        while len(self._cancelled) > REMEMBERED:
            self._cancelled.popitem(last=False)  # one call, because other threads do this too
        if (call := self.waiting.get(key)) is not None:
            call.drop()
        if (call := self.serving.get(key)) is not None:
            call.cancel()
            self.handed_on.cancelled(key)
        for listener in self.on_cancel:
            listener(key)
