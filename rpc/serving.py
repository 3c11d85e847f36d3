"""The callee's side: requests come in, a handler runs, one answer goes out."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from ..core.errors import RpcError, SerializationError
from ..core.futures import Future
from .codec import Codec
from .control_channel import ControlChannel
from .flow import Departure, Flow
from .flows import Flows
from .lanes.base import Connection
from .messages import Flag, Incoming, Kind, Outgoing, Topic
from .peers import Peer, Peers
from .state import AgentState
from .threads import AgentThreads
from .timers import Timer, Timers
from .wire.control import decode_ids
from .wire.failures import describe_failure
from .wire.frames import encode
from .wire.payload import pack

logger = logging.getLogger("telegrad.rpc")
CallKey = tuple[int, int]  # rank of the caller, id of the call there
REMEMBERED = 4096  # cancels that may have overtaken their calls
Handler = Callable[["ServerCall"], None]


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
        self.serving: set[ServerCall] = set()
        self.accepted = 0
        self._waiting: dict[CallKey, ServerCall] = {}  # not started: whoever takes a request out starts or drops it
        self._cancelled: dict[CallKey, None] = {}  # the latest cancels of calls that did not wait, maybe to come
        control.on(Topic.CANCEL, self._told)

    def serve(self, method: int, handler: Handler) -> None:
        """Answer requests of ``method`` with ``handler(call)``."""
        self.handlers[method] = handler

    def accept(self, message: Incoming, connection: Connection) -> None:
        """A request arrived. Runs in a reader's thread."""
        late = message.timeout and not message.flags & Flag.KEEP
        deadline = self.timers.now() + message.timeout if late else 0.0
        call = ServerCall(self, message, connection, deadline)
        self.accepted += 1
        self.serving.add(call)
        self._waiting[call.key] = call
        if call.key in self._cancelled:  # it came before
            self.drop(call)
            return
        self.resume(call)

    def resume(self, call: ServerCall) -> None:
        """Let a request start as soon as a thread is free."""
        try:
            self.threads.functions.submit(call.run)
        except RpcError as error:
            if self.take(call):
                call.fail(error)

    # -- requests that wait

    def take(self, call: ServerCall) -> bool:
        """Take a request that starts, or is dropped; False if somebody else did. It no longer counts as under way."""
        if self._waiting.pop(call.key, None) is not call:
            return False
        message = call.message
        assert message is not None
        message.flow.used(message.size)
        return True

    def drop(self, call: ServerCall) -> None:
        """Nobody waits for this request any more: it does not start, if it has not."""
        if not call.must_run and self.take(call):
            call.message = None
            self.served(call)

    def _told(self, peer: Peer, payload: bytes) -> None:
        for call_id in decode_ids(payload):
            self.cancel(peer, call_id)

    def cancel(self, peer: Peer, call_id: int) -> None:
        """The caller gave a call up: it is dropped unless it has started, also if it has yet to arrive."""
        key = (peer.info.id, call_id)
        self._cancelled[key] = None
        while len(self._cancelled) > REMEMBERED:
            self._cancelled.pop(next(iter(self._cancelled)), None)
        if (call := self._waiting.get(key)) is not None:
            self.drop(call)

    # -- answers

    def send(self, call: ServerCall, message: Outgoing) -> None:
        """Send an answer on the connection of its request, in line if the caller does not read."""
        self.codec.sending(message)
        sent = False
        try:
            parts, connection = encode(message), call.connection
            size, flow = sum(map(len, parts)), connection.flow or self.flows.of(connection)
            sent = connection.send(parts) if flow.take(size) else self._queue(call, message, parts, size, flow)
        finally:
            if not sent:
                self.codec.not_delivered(message)

    def _queue(self, call: ServerCall, message: Outgoing, parts: list[Any], size: int, flow: Flow) -> bool:
        # Any number may stand in line: no further request of that caller starts meanwhile.
        answer = QueuedAnswer()
        message.let_go()

        def unsent() -> None:
            answer.leave_line()
            self.codec.not_delivered(message)

        def give_up() -> None:
            if flow.give_up(answer):
                unsent()

        if call.deadline:
            answer.timer = self.timers.call_at(call.deadline, give_up)
        return flow.queue(answer, parts, size, unsent, limited=False, waits=False)

    def served(self, call: ServerCall) -> None:
        """A request was answered, or dropped because its caller gave up."""
        self.serving.discard(call)


class QueuedAnswer(Departure):
    """An answer in line, until the deadline of its call."""

    __slots__ = ("timer",)

    def __init__(self) -> None:
        super().__init__()
        self.timer: Timer | None = None

    def leave_line(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class ServerCall:
    """A request that arrived. A handler opens its body and answers with ``reply``, ``reply_with`` or ``fail``, now or later."""

    __slots__ = (
        "_answered",
        "_parked",
        "_peer",
        "_server",
        "connection",
        "deadline",
        "key",
        "message",
        "must_run",
        "sender",
        "what",
    )

    def __init__(self, server: Server, message: Incoming, connection: Connection, deadline: float) -> None:
        self._server = server
        self.message: Incoming | None = message
        self.sender = message.sender
        self._peer = server.peers.at(message.sender)
        self.key: CallKey = (message.sender, message.call_id)
        self.must_run = bool(message.flags & Flag.KEEP)
        self.connection = connection
        self.deadline = deadline
        self.what = ""
        self._answered = False
        self._parked = False  # the function has returned, and a future of somebody else's will answer

    @property
    def abandoned(self) -> bool:
        """Whether nothing runs for it any more and nobody waits for its answer."""
        if not self._parked:
            return False
        return self._late() or bool(self._peer.gone)

    def run(self) -> None:
        """Serve it, unless its caller has given up meanwhile. Runs in a thread for user functions."""
        message, server = self.message, self._server
        if message is None or (message.flow.in_line and message.flow.hold(self)):
            return  # dropped; or answers to its caller stand in line, and ``Server.resume`` brings it here again
        if not server.take(self):
            return
        gone = self._peer.gone and not self.must_run
        if self._server.state.closed or gone or self._late():
            server.served(self)
            return
        self._server.threads.new_context().run(self._serve, message)

    def _late(self) -> bool:
        return self.deadline > 0 and self._server.timers.now() > self.deadline

    def _serve(self, message: Incoming) -> None:
        try:
            self._server.handlers[message.method](self)
        except BaseException as error:
            self.fail(error)

    def open(self) -> Any:
        """The body, unpickled. Once: the message is let go, so that what it carried lives no longer than it is used."""
        message = self.message
        self.message = _answerable(message)
        assert message is not None
        return self._server.codec.open(message)

    def reply_with(self, result: Any, is_future: bool = False) -> None:
        """Answer with what a user function returned: a value, a coroutine, or (``is_future``) a future."""
        if is_future:
            self._reply_later(result)
        elif inspect.iscoroutine(result):
            self._reply_later(self._server.threads.run_coroutine(result, copy_context()))
        else:
            self.reply(result)

    def _reply_later(self, future: Any) -> None:
        check_future(future).add_done_callback(self._reply_from)
        self._parked = True

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
        message = self._outgoing()
        self._server.codec.pack(message, value, self._peer.same_main, lambda body: [("the result", body)])
        self._send(message)

    def fail(self, error: BaseException) -> None:
        """Answer with an exception. It is the last resort: whatever goes wrong here, the request counts as served."""
        try:
            self._send_failure(error)
        finally:
            self._server.served(self)

    def _send_failure(self, error: BaseException) -> None:
        message = self._outgoing()
        message.flags |= Flag.ERROR
        description = describe_failure(error, self._server.state.name)
        if sum(len(part) for part in description if part) > self._server.codec.limit:
            description = describe_failure(_too_large(description[1]), self._server.state.name)
        # No limit: an error that is too large for it, whatever it is, was replaced above.
        pack(message, description, (), True, lambda body: [("the exception", body)], sys.maxsize)
        message.flags &= ~Flag.PLAIN
        self._send(message)

    def _outgoing(self) -> Outgoing:
        assert self.message is not None
        return Outgoing(Kind.REPLY, self.message.method, self.message.call_id, 0.0, self.sender)

    def _send(self, message: Outgoing) -> None:
        if self._answered:
            logger.warning("%s answered a request twice; the second answer was dropped", self.what or "a handler")
            return
        if not self._late():  # else nobody waits for it
            self._server.send(self, message)
        self._answered = True
        self._server.served(self)


def _too_large(kind: str) -> SerializationError:
    return SerializationError(
        f"the call raised {kind}, which is larger than GrpcRpcBackendOptions(max_message_bytes=) of the callee; raise it there"
    )


def check_future(result: Any) -> Future[Any]:
    """What a function marked with ``async_execution`` returned.

    Raises:
        TypeError: it is no future.
    """
    if not isinstance(result, Future):
        raise TypeError(
            f"a function marked with async_execution must return a Future; it returned {type(result).__name__}"
        )
    return result


def _answerable(message: Incoming | None) -> Incoming:
    if message is None:
        raise SerializationError("the body of a request can be opened once")
    return Incoming(message.kind, message.flags, message.method, message.call_id, message.timeout, message.sender)
