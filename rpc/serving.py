"""Callee's side: requests come in, a handler runs, one answer goes out."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial
from types import CoroutineType
from typing import Any

from ..core.errors import RpcError, SerializationError
from ..core.futures import Future, collect_all, complete_once, run_callbacks
from .codec import Codec
from .control_channel import ControlChannel
from .done import DoneAnswers
from .flows import Flows
from .lanes.base import Connection
from .messages import Incoming, Method, Topic
from .peers import Peer, Peers, WorkerInfo
from .pool import Idle
from .replies import Replies, Reply, check_future, label_result, pack_failure
from .state import AgentState
from .threads import AgentThreads
from .timers import Timers
from .wire.control import decode_ids
from .wire.failures import traceback_text
from .wire.header import Flag, Kind

logger = logging.getLogger("telegrad.rpc")
WARNINGS = 4  # number of the warnings among the extras of an answer
WarningRow = tuple[str, str, str, str, int]  # module and name of its class, its text, file and line
CallKey = tuple[int, int]  # rank of the caller, id of the call there
call_variable: ContextVar[ServerCall | None] = ContextVar("telegrad_call", default=None)  # the one that runs
REMEMBERED = 4096  # cancels that may have overtaken their calls
Handler = Callable[["ServerCall"], None]
Refused = Callable[["ServerCall", BaseException], None]


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
        # Not started: the thread that takes a request out starts or drops it.
        self.waiting: dict[CallKey, ServerCall] = {}
        # The latest cancels of calls that did not wait, maybe to come.
        self._cancelled: OrderedDict[CallKey, None] = OrderedDict()
        self.control = control
        self.cancellation_lock = threading.Lock()
        self.replies = Replies(codec, flows, timers)
        self.done = DoneAnswers(flows, control, timers, self.waiting)
        control.on(Topic.CANCEL, self._on_cancel)

    def caller_lost(self, peer: Peer) -> None:
        """Let the calls of a worker that is gone see that nobody waits for them."""
        for call in list(self.serving.values()):
            if call.sender == peer.number:
                call.cancel()

    def serve(self, method: int, handler: Handler, refused: Refused | None = None, quick: bool = False) -> None:
        """Answer requests of ``method`` with ``handler(call)``.

        Args:
            method: number of the method.
            handler: answers, in a thread for user functions.
            refused: ``refused(call, error)`` hears of a request that arrived and fails before ``handler`` gets it.
            quick: ``handler`` runs in the reader's thread: it does not block, and runs no user code there.
        """
        if quick:
            self._quick.add(method)
        self.handlers[method] = handler
        if refused is not None:
            self.refused[method] = refused

    def accept(self, call: ServerCall, connection: Connection, peer: Peer) -> None:
        """Take a request that arrived. Runs in a reader's thread.

        Args:
            call: the request.
            connection: where it came from.
            peer: its caller.
        """
        call.begin(self, connection, peer)
        key = call.key
        if key in self.serving:
            call.flow.used(call.size)  # a repetition
            return
        # No other thread and no signal handler runs before both are made: who drops it must find it in both.
        self.serving[key] = self.waiting[key] = call
        self.accepted += 1
        if key in self._cancelled:  # it came before
            self.drop(call)
            return
        try:
            if call.waits_for:
                self._resume_in_time(call)
            elif call.method in self._quick:
                call.run()
            else:
                self.resume(call)
        except BaseException:  # Ctrl-C, say: nobody else would start it, or answer what this thread serves
            if call.method not in self._quick or key in self.waiting:
                self._resume_in_time(call)  # if it was started, that changes nothing
            elif self.serving.get(key) is call:
                call.fail(RpcError("the thread that served the request was interrupted"))
            raise

    def _resume_in_time(self, call: ServerCall) -> None:
        collect_all(call.waits_for).add_done_callback(lambda _: self.resume(call))

    def resume(self, call: ServerCall) -> None:
        """Let a request start as soon as a thread is free."""
        try:
            self.threads.functions.submit(call.run)
        except RpcError as error:
            if self.take(call):
                if refused := self.refused.get(call.method):
                    refused(call, error)
                call.fail(error)

    # -- requests that wait

    def take(self, call: ServerCall) -> bool:
        """Take a request that starts, or is dropped; False if somebody else did. It no longer counts as in flight."""
        if self.waiting.pop(call.key, None) is not call:
            return False
        call.flow.used(call.size)
        return True

    def drop(self, call: ServerCall) -> None:
        """Nobody waits for this request any more: it does not start, if it has not."""
        if not call.must_run and self.take(call):
            call.drop_content()
            self.served(call)

    def _on_cancel(self, peer: Peer, payload: bytes) -> None:
        for call_id in decode_ids(payload):
            self.cancel(peer, call_id)

    def cancel(self, peer: Peer, call_id: int) -> None:
        """Drop a request that its caller has cancelled, also if it has yet to arrive; one that has started can see it."""
        key = (peer.number, call_id)
        self._cancelled[key] = None
        while len(self._cancelled) > REMEMBERED:
            self._cancelled.popitem(last=False)  # without a look at it before: other threads do the same
        if (call := self.waiting.get(key)) is not None:
            self.drop(call)
        if (call := self.serving.get(key)) is not None:
            call.cancel()
        for listener in self.on_cancel:
            listener(key)

    # -- answers

    def served(self, call: ServerCall) -> None:
        """Note that a request was answered, or dropped because its caller gave up."""
        if self.serving.get(call.key) is call:
            del self.serving[call.key]
        if not call.streams:
            call._over = True
            if call._cancellation is not None:
                call.ended()
        if call.extras:
            self.codec.served(call)


class ServerCall(Incoming):
    """Request that arrived. A handler opens its body and answers with ``reply``, ``reply_with`` or ``fail``, now or later.

    Attributes:
        connection: where it came from, and its answer goes.
        deadline: when nobody waits for the answer any more, in the agent's seconds; 0 for never.
        key: the caller's rank and the id of the call there.
        what: names it in log messages.
        cancelled: whether its caller has given up, or is lost.
        warnings: shown while it runs, for its caller (``remote_warnings.py``).
        parked: its function has returned, and a future of somebody else's will answer.
        profiles: of a request for an item, those that record the step that makes it.
        streams: it opens a stream of items, and goes on when it was answered.
    """

    __slots__ = (
        "_answered",
        "_cancellation",
        "_opened",
        "_over",
        "_peer",
        "_server",
        "cancelled",
        "connection",
        "deadline",
        "key",
        "parked",
        "profiles",
        "streams",
        "warnings",
        "what",
    )

    _cancellation: Future[bool] | None

    def begin(self, server: Server, connection: Connection, peer: Peer) -> None:
        """Note who serves it for whom; called once, before all else.

        Args:
            server: serves it.
            connection: where it came from.
            peer: its caller.
        """
        self._server = server
        self.connection = connection
        self.deadline = server.timers.now() + self.timeout if self.timeout else 0.0
        self.key: CallKey = (self.sender, self.call_id)
        self.what = ""
        self._peer = peer
        self.profiles: tuple[Any, ...] = ()
        self.warnings: tuple[WarningRow, ...] = ()
        self._opened = False
        self._answered = False
        self.cancelled = self.streams = self._over = False
        self._cancellation = None
        self.parked = False

    @property
    def must_run(self) -> bool:
        """Return whether it runs even if its caller has given up."""
        return bool(self.flags & Flag.KEEP)

    @property
    def abandoned(self) -> bool:
        """Return whether nobody waits for its answer: it asks for a later item of a stream, or nothing runs for it any more."""
        return self.method == Method.PULL or (self.parked and (self._expired() or bool(self._peer.gone)))

    def run(self) -> Idle | None:
        """Serve it, unless its caller has given up meanwhile. Runs in a thread for user functions.

        Returns:
            What the thread does before it idles: it reads the connection for a moment.
        """
        if self.flow.queued and self.flow.hold(self):
            return None  # answers to its caller are queued, and ``Server.resume`` brings it here again
        server = self._server
        if not server.take(self):
            return None
        late = 0.0 < self.deadline < server.timers.now()  # ``_expired``, without a call
        if server.state.closed or ((self._peer.gone or late) and not self.must_run):
            server.served(self)
            return None
        server.threads.new_context().run(self._serve)
        return None if (reading := self.connection.reading) is None else reading.linger

    def _expired(self) -> bool:
        return self.deadline > 0 and self._server.timers.now() > self.deadline

    def _serve(self) -> None:
        call_variable.set(self)
        try:
            self._server.handlers[self.method](self)
        except BaseException as error:
            self.fail(error)

    @property
    def caller(self) -> WorkerInfo:
        """The worker that made the call."""
        return self._peer.info

    @property
    def left(self) -> float:
        """Seconds until nobody waits for the answer any more; infinite if the call has no deadline."""
        return max(self.deadline - self._server.timers.now(), 0.0) if self.deadline else math.inf

    def cancellation(self) -> Future[bool]:
        """Return a future that completes with True when the caller gives up, with False when the call is answered."""
        future = self._cancellation
        if future is None:
            with self._server.cancellation_lock:
                future = self._cancellation = self._cancellation or Future()
            if self._over:  # it ended before the future was there to be found; whoever ends it later finds it
                complete_once(future, self.cancelled)
        return future

    def cancel(self) -> None:
        """Let what runs for it see that nobody waits for it any more. Any thread: no user code runs here."""
        self.cancelled = True
        self.ended()

    def ended(self) -> None:
        """Complete ``cancellation()``, if anybody asked for it."""
        self._over = True
        if (future := self._cancellation) is not None and (callbacks := future.try_finish(self.cancelled)):
            self._server.threads.run_later(partial(run_callbacks, callbacks))

    def open(self) -> Any:
        """Return the body, unpickled. Once: the content is dropped, so that it lives no longer than it is used.

        Raises:
            SerializationError: it cannot be unpickled here, or was before.
        """
        if self._opened:
            raise SerializationError("the body of a request can be opened once")
        self._opened = True
        try:
            return self._server.codec.open(self)
        finally:
            self.drop_content()

    def reply_with(self, result: Any, is_future: bool = False) -> None:
        """Answer with what a user function returned: a value, a coroutine, or (``is_future``) a future."""
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
        try:
            self.reply(future.value())
        except BaseException as problem:
            self.fail(problem)

    def reply(self, value: Any) -> None:
        """Answer with a value.

        Raises:
            SerializationError: it cannot be sent; nothing was.
        """
        codec, reply = self._server.codec, None
        if value is not None or self.warnings or codec.speaks():
            reply = Reply(Kind.REPLY, self.method, self.call_id, 0.0, self.sender, self.deadline)
            codec.pack(reply, value, self._peer.same_main, label_result)
        self._send(reply)

    def done_soon(self) -> None:
        """Answer with ``None``, within a millisecond, as a control message together with others: nobody waits for it."""
        if self.flags & Flag.ANSWER:
            self.reply(None)  # which may get lost with its connection; the control message does not
        self._answered = True
        self._server.done.send_soon(self._peer, self.call_id)
        self._server.served(self)

    def park(self) -> None:
        """Note that the handler has returned, and something else answers later."""
        self.parked = True

    def fail(self, error: BaseException) -> None:
        """Answer with an exception. It is the last resort: whatever goes wrong here, the request counts as served."""
        self.note(error)
        try:
            reply = Reply(Kind.REPLY, self.method, self.call_id, 0.0, self.sender, self.deadline)
            pack_failure(reply, error, self._server.state.name, self._server.codec.limit)
            self._send(reply)
        finally:
            self._server.served(self)

    def note(self, error: BaseException) -> None:
        """Log an exception of the function, on the level INFO: the caller gets it, too, with its traceback."""
        if logger.isEnabledFor(logging.INFO):
            what, caller = self.what or "a request", self._peer.info.name
            logger.info("%s, called by worker %r, raised:\n%s", what, caller, traceback_text(error).rstrip())

    def _send(self, reply: Reply | None) -> None:
        """Send an answer; ``None`` is that of ``None``, which needs no message of its own."""
        if self._answered:
            logger.warning("%s answered a request twice; the second answer was dropped", self.what or "a handler")
            return
        if self.warnings and reply is not None:
            reply.tell(WARNINGS, json.dumps(self.warnings).encode())
            self.warnings = ()
        late = 0.0 < self.deadline < self._server.timers.now()
        if not late or self.must_run:  # else nobody waits for it
            if reply is None:
                self._server.done.send(self.connection, self.call_id)
            else:
                self._server.replies.send(reply, self.connection)
        self._answered = True
        self._server.served(self)
