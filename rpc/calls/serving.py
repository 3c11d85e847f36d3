"""Requests that an agent serves, each from its arrival to its answer: it waits for a thread, and is then served or dropped."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from ...base.errors import ArgumentTypeError, RpcError, SerializationError
from ...core.futures import Future, attempt, collect_all, complete_once, run_callbacks
from ..call_states import ANSWERED, ENDED, PARKED, WAITING, ServingState
from ..links.link import LinkState
from ..running import call_variable
from ..wire.control import decode_ids
from ..wire.failures import traceback_text
from ..wire.header import Flag, FrameKind
from ..wire.messages import NO_ATTACHMENTS, QUESTIONS, Incoming, Method, Topic
from .handed_on import CallKey as CallKey
from .handed_on import HandedOn
from .replies import DoneAnswers, Replies, Reply, label_result

if TYPE_CHECKING:
    from ..lanes.large.landing import Landing
    from ..links.control_channel import ControlChannel
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..links.worker_info import WorkerInfo
    from ..state import AgentState
    from ..threads.agent_threads import AgentThreads
    from ..threads.pool import Idle
    from ..threads.timers import Timers
    from .codec import Codec

logger = logging.getLogger("telegrad.rpc")
GONE = LinkState.GONE
WARNINGS = 4  # number of the extra of an answer that has the warnings
WarningRow = tuple[str, str, str, str, int]  # module and name of a warning's class, its text, file and line
Handler = Callable[["ServerCall"], None]
Refused = Callable[["ServerCall", BaseException], None]
Early = Callable[["ServerCall"], object]
FindPlace = Callable[[memoryview, int], "Landing | None"]
MOST_AWAITING = 4096  # requests that wait for values without room in their windows; further ones keep their room
LARGEST_AWAITING = 16_384  # bytes of such a request
REMEMBERED = 4096  # latest cancels that are kept, because a cancel may overtake its call


class ServerCall(Incoming):
    """Request that arrived. A handler opens its body and answers with ``reply``, ``reply_with`` or ``fail``, now or later.

    ``wire.frames.decode`` fills what arrived, ``Server.accept`` the rest.

    Attributes:
        deadline: time after which the caller does not wait for the answer, by the clock of the program; 0 for never.
        state: where it is in its life (``call_states.py``).
        what: names it in log messages.
        cancelled: whether its caller has given up, or is lost.
        peer: its caller.
        warnings: warnings that were shown while it ran, to be sent to its caller (``remote_warnings.py``).
        kept: what its method keeps with it: for a request of an item the profiles that record the step which makes it, for a
            call of a mesh the worker that made it (``peer`` has passed it on), for a call of a function or a method what runs
            it in the place of a plain call, or ``()``: it gets a function that finds it again, itself and its arguments.
    """

    __slots__ = (
        "_cancellation",
        "_server",
        "cancelled",
        "deadline",
        "kept",
        "peer",
        "state",
        "warnings",
        "what",
    )

    kind = FrameKind.REQUEST
    peer: Peer
    deadline: float
    state: ServingState
    what: str
    cancelled: bool
    warnings: tuple[WarningRow, ...]
    kept: Any
    _cancellation: Future[bool] | None
    _server: Server

    @property
    def key(self) -> CallKey:
        """Number of the caller, and the id of the call there."""
        return self.session.number, self.call_id

    @property
    def parked(self) -> bool:
        """Return whether its handler has returned, and the answer comes later."""
        return self.state is PARKED

    @property
    def must_run(self) -> bool:
        """Return whether it must run even if its caller has given up."""
        return bool(self.flags & Flag.KEEP)

    @property
    def abandoned(self) -> bool:
        """Return whether shutdown need not wait for its answer.

        It need not if the call asks for a later item of a stream, or is parked and its caller is gone or its deadline over.
        """
        return self.method == Method.PULL or (self.state is PARKED and (self._expired() or bool(self.peer.gone)))

    def run(self) -> Idle | None:
        """Serve it, unless its caller has given up meanwhile. Runs in a thread for user functions.

        Returns:
            A function for the thread to call before it idles: it reads the session for a moment.
        """
        flow = self.session.flow
        if flow.queued and self.method not in QUESTIONS and flow.hold(self):
            return None  # answers to its caller are queued; ``Server.resume`` starts it again when they have left
        server = self._server
        if not self.claim():
            return None
        late = 0.0 < self.deadline < server.clock.now()  # ``_expired``, without a call
        if server.state.closed or ((self.peer.link.state is GONE or late) and not self.must_run):
            self.finish()
            return None
        self.state = self.state.start
        server.threads.new_context().run(self._serve)
        return None if (reading := self.session.reading) is None else reading.linger

    def claim(self) -> bool:
        """Take it out of those that wait, to start or drop it; return False if another thread did.

        It no longer counts as in flight.
        """
        session = self.session
        if self._server.waiting.pop((session.number, self.call_id), None) is not self:
            return False
        session.flow.used(self.size)
        return True

    def start(self) -> bool:
        """Start it in a reader's thread, which parks it: it still counts as in flight. Return False if it was dropped."""
        if self._server.waiting.pop(self.key, None) is not self:
            return False
        self.state = self.state.start
        return True

    def drop(self) -> None:
        """Drop it, because its answer is not needed any more, unless it has started or must run."""
        if not self.must_run and self.claim():
            self.drop_content()
            self.finish()

    def finish(self) -> None:
        """Note that it was answered, or dropped because its caller gave up."""
        key, serving = (self.session.number, self.call_id), self._server.serving
        if serving.get(key) is self:
            del serving[key]
        if self._server.handed_on.wanted:
            self._server.handed_on.ended(key)
        self.state = self.state.drop
        if self.state is ENDED and self._cancellation is not None:
            self.tell_end()
        if self.extras:
            self._server.codec.served(self)

    def _expired(self) -> bool:
        return self.deadline > 0 and self._server.clock.now() > self.deadline

    def _serve(self) -> None:
        call_variable.set(self)
        try:
            self._server.handlers[self.method](self)
        except BaseException as error:
            if (failed := self._server.failed) is not None:
                failed(error)
            self.fail(error)

    @property
    def caller(self) -> WorkerInfo:
        """The worker that made the call."""
        caller: WorkerInfo = self.kept if self.method == Method.MESH else self.peer.info
        return caller

    @property
    def left(self) -> float:
        """Seconds for which the caller still waits; infinite if the call has no deadline."""
        return max(self.deadline - self._server.clock.now(), 0.0) if self.deadline else math.inf

    def cancellation(self) -> Future[bool]:
        """Return a future that completes with True when the caller gives up, with False when the call is answered."""
        future = self._cancellation
        if future is None:
            with self._server.cancellation_lock:
                future = self._cancellation = self._cancellation or Future()
            # It ended before ``_cancellation`` was set; an end from here on completes the future itself.
            if self.cancelled or self.state is ENDED:
                complete_once(future, self.cancelled)
        return future

    def cancel(self) -> None:
        """Mark it as cancelled, for the code that runs for it. Any thread: no user code runs here."""
        self.cancelled = True
        self.tell_end()

    def ended(self) -> None:
        """Note that the generator of its stream has ended."""
        self.state = self.state.end
        self.tell_end()

    def tell_end(self) -> None:
        """Complete the future of ``cancellation()``, if there is one."""
        if (future := self._cancellation) is not None and (callbacks := future.try_finish(self.cancelled)):
            self._server.threads.run_later(partial(run_callbacks, callbacks))

    def open(self) -> Any:
        """Return the body, unpickled. Works once: the content is dropped, to free its memory early.

        Raises:
            SerializationError: it cannot be unpickled here, or was opened before.
        """
        if self.pickled is None:
            raise SerializationError("the body of a request can be opened once")
        try:
            return self._server.codec.open(self)
        finally:
            self.pickled, self.attached = None, NO_ATTACHMENTS

    def reply_with(self, result: Any, is_future: bool = False) -> None:
        """Answer with the result of a user function: a value, a coroutine, or (``is_future``) a future."""
        if is_future:
            self._reply_later(result)
        elif isinstance(result, CoroutineType):
            outcome = self._server.threads.run_coroutine(result, copy_context())
            self.cancellation().add_done_callback(lambda ended: outcome.cancel() if ended.value() else None)
            self._reply_later(outcome)
        else:
            self.reply(result)

    def _reply_later(self, future: Any) -> None:
        check_future(future).add_done_callback(self._reply_from)
        self.park()

    def _reply_from(self, future: Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            self.fail(error)
            return
        _, problem = attempt(lambda: self.reply(future.value()))
        if problem is not None:
            self.fail(problem)

    def reply(self, value: Any, error: BaseException | None = None) -> Reply | None:
        """Answer with a value, or with an exception; return the answer if it is a message of its own.

        Raises:
            SerializationError: it cannot be sent; nothing was.
        """
        if self.state is ANSWERED or self.state is ENDED:
            logger.warning("%s answered a request twice; the second answer was dropped", self.what or "a handler")
            return None
        reply: Reply | None = None
        server = self._server
        if server.handed_on.wanted and not self.cancelled:
            server.handed_on.answered(self.key, value, error)
        late = 0.0 < self.deadline < server.clock.now()
        if not late or self.must_run:  # else its caller has given up
            if value is None and error is None and not self.warnings and not server.codec.speaks():
                server.done.send(self.session, self.call_id)  # ``None`` needs no message of its own
            else:
                reply = Reply(self.method, self.call_id, 0.0, self.peer.number)
                reply.deadline = self.deadline
                # Before interceptors see it: it goes this way or not at all.
                reply.session = session = self.session
                if self.warnings:
                    reply.tell(WARNINGS, json.dumps(self.warnings).encode())
                if error is None:
                    server.codec.pack(reply, value, self.peer, label_result)
                else:
                    server.codec.pack_failure(reply, error, self.peer)
                self.warnings = ()
                server.replies.send(reply, session)
        self.state = self.state.answer
        self.finish()
        return reply

    def done_soon(self) -> None:
        """Answer with ``None`` later, by a control message with others: no thread waits for the answer."""
        if not self._server.codec.answering.isdisjoint(self.extras):
            self.reply(None)  # may be lost with its session; the control message cannot
        self.state = self.state.answer
        self._server.done.send_soon(self.peer, self.call_id)
        self.finish()

    def park(self) -> None:
        """Note that the handler has returned, and the answer comes later."""
        self.state = self.state.park

    def fail(self, error: BaseException) -> None:
        """Answer with an exception. If even that fails, the request still counts as served."""
        self.note(error)
        try:
            self.reply(None, error)
        finally:
            self.finish()

    def note(self, error: BaseException) -> None:
        """Log an exception of the function: at level INFO, because the caller gets it too, or as a warning if it is gone."""
        level = logging.WARNING if self.peer.gone else logging.INFO
        if logger.isEnabledFor(level):
            what, caller = self.what or "a request", self.peer.info.name
            logger.log(level, "%s, called by worker %r, raised:\n%s", what, caller, traceback_text(error).rstrip())


# A thread that serves a request has a frame of one of these, with the name of the variable that is the request.
SERVING_CODES = {ServerCall._serve.__code__: "self"}


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
        if attached.values and call.size <= LARGEST_AWAITING and len(self.waiting) <= MOST_AWAITING:
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


def check_future(result: Any) -> Future[Any]:
    """Return the result of a function marked with ``async_execution``, which must be a future.

    Raises:
        ArgumentTypeError: it is no future.
    """
    if not isinstance(result, Future):
        raise ArgumentTypeError(
            f"a function marked with async_execution must return a Future; it returned {type(result).__name__}"
        )
    return result
