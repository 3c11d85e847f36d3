"""``ServerCall``: one request that an agent serves, from its arrival to its answer."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol

from ...base.errors import ArgumentTypeError, SerializationError
from ...core.futures import Future, attempt, complete_once, run_callbacks
from ..call_states import ANSWERED, ENDED, PARKED, ServingState
from ..links.link import LinkState
from ..running import call_variable
from ..wire.failures import traceback_text
from ..wire.header import Flag, FrameKind
from ..wire.messages import NO_ATTACHMENTS, QUESTIONS, Incoming, Method
from .replies import WARNINGS, Reply, label_result

if TYPE_CHECKING:
    from ...core.futures import ProgramClock
    from ..links.peer import Peer
    from ..links.worker_info import WorkerInfo
    from ..state import AgentState
    from ..threads.agent_threads import AgentThreads
    from ..threads.pool import Idle
    from .codec import Codec
    from .handed_on import CallKey, HandedOn
    from .replies import DoneAnswers, Replies, WarningRow

logger = logging.getLogger("telegrad.rpc")
GONE = LinkState.GONE


class RequestOwner(Protocol):
    """Requests of the agent (``Server``), as one of them sees them.

    Attributes:
        state: the agent's state.
        clock: of the program; deadlines are by it.
        threads: run user functions.
        codec: opens requests and packs answers.
        handlers: by the number of their method.
        failed: called with an exception of a handler, if a debugger waits for one.
        serving: accepted and not answered.
        waiting: not started.
        handed_on: gives results to other requests.
        replies, done: send answers.
        cancellation_lock: guards the making of ``cancellation()``.
    """

    state: AgentState
    clock: ProgramClock
    threads: AgentThreads
    codec: Codec
    handlers: dict[int, Callable[[ServerCall], None]]
    failed: Callable[[BaseException], object] | None
    serving: dict[CallKey, ServerCall]
    waiting: dict[CallKey, ServerCall]
    handed_on: HandedOn
    replies: Replies
    done: DoneAnswers
    cancellation_lock: threading.Lock


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
    _server: RequestOwner

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
