"""Requests that an agent serves: each that arrives waits for a thread, and is then served (``server_call.py``) or dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.errors import RpcError
from ...core.futures import collect_all
from ..wire.control import decode_ids
from ..wire.messages import Topic
from .replies import DoneAnswers, Replies
from .server_call import CallKey, Handler, ServerCall

if TYPE_CHECKING:
    from ..flow.flows import Flows
    from ..links.control_channel import ControlChannel
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..state import AgentState
    from ..threads.agent_threads import AgentThreads
    from ..threads.timers import Timers
    from .codec import Codec

REMEMBERED = 4096  # latest cancels that are kept, because a cancel may overtake its call
Refused = Callable[[ServerCall, BaseException], None]


class Server:
    """Requests that one agent serves.

    Args:
        state: the agent's state.
        peers: the workers of the job.
        control: for cancels.
        flows: flow control of the connections.
        codec: opens requests and packs answers.
        timers: for deadlines.
        threads: run the handlers.
    """

    def __init__(
        self,
        state: AgentState,
        peers: Peers,
        control: ControlChannel,
        flows: Flows,
        codec: Codec,
        timers: Timers,
        threads: AgentThreads,
    ) -> None:
        self.state = state
        self.peers = peers
        self.flows = flows
        self.codec = codec
        self.timers = timers
        self.threads = threads
        self.handlers: dict[int, Handler] = {}
        self.refused: dict[int, Refused] = {}
        self._quick: set[int] = set()
        self.serving: dict[CallKey, ServerCall] = {}  # accepted and not answered
        self.on_cancel: list[Callable[[CallKey], object]] = []  # called in a reader's thread: quick, no user code
        self.accepted = 0
        self.waiting: dict[CallKey, ServerCall] = {}  # not started; the thread that takes one out starts or drops it
        self._cancelled: OrderedDict[CallKey, None] = OrderedDict()  # the latest cancels; their calls may still arrive
        self.control = control
        self.cancellation_lock = threading.Lock()
        self.replies = Replies(codec, flows, timers)
        self.done = DoneAnswers(flows, control, timers, self.waiting)
        control.on(Topic.CANCEL, self._on_cancel)

    def caller_lost(self, peer: Peer) -> None:
        """Cancel the calls of a worker that is gone."""
        for call in list(self.serving.values()):
            if call.sender == peer.number:
                call.cancel()

    def serve(self, method: int, handler: Handler, refused: Refused | None = None, quick: bool = False) -> None:
        """Answer requests of ``method`` with ``handler(call)``.

        Args:
            method: number of the method.
            handler: answers, in a thread for user functions.
            refused: ``refused(call, error)`` is called for a request that arrived and fails before ``handler`` is called.
            quick: ``handler`` runs in the reader's thread: it does not block and runs no user code.
        """
        if quick:
            self._quick.add(method)
        self.handlers[method] = handler
        if refused is not None:
            self.refused[method] = refused

    def accept(self, call: ServerCall) -> None:
        """Take a request that arrived. Runs in a reader's thread."""
        if call.timeout:
            call.deadline = self.timers.now() + call.timeout
        key = (call.connection.number, call.call_id)
        if key in self.serving:
            call.connection.flow.used(call.size)  # a repetition
            return
        # One statement: a thread that drops it must find it in both.
        self.serving[key] = self.waiting[key] = call
        self.accepted += 1
        if key in self._cancelled:  # the cancel arrived first
            call.drop()
            return
        if call.attached.waits_for:
            collect_all(call.attached.waits_for).add_done_callback(lambda _: self.resume(call))
        elif call.method in self._quick:
            call.run()
        else:
            self.resume(call)

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
        for listener in self.on_cancel:
            listener(key)
