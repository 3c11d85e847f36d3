"""Caller's side: requests go out, answers and deadlines come in, each call is completed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.errors import AgentClosedError, RpcCancelledError, RpcError, RpcTimeoutError, WorkerLostError
from ...core.futures import (
    Future,
    attempt,
    broke_protected,
    interrupts_protected,
    raised_by_handler,
    run_callbacks,
    thread_role,
)
from ..call_states import ADMITTED, ANSWERED_CALL, FAILED, NEW, WRITTEN
from ..links.link import LinkState
from ..wire.control import decode_ids, encode_ids
from ..wire.failures import rebuild_failure
from ..wire.frames import encode
from ..wire.header import FRAME_HEAD, Flag, FrameKind
from ..wire.messages import NO_ATTACHMENTS, QUESTIONS, Attachments, Incoming, Method, Outgoing, Topic
from ..wire.payload import no_labels
from .dispatch import CallTable, PendingCall
from .landing_future import LandingFuture
from .timed_waits import TimedWaits
from .unready import why_unready
from .unseen import UnseenErrors

if TYPE_CHECKING:
    from ..flow.flow import Flow
    from ..lanes.large.landing import Landing
    from ..lanes.session import Session
    from ..links.control_channel import ControlChannel
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..links.sessions import Sessions
    from ..state import AgentState
    from ..threads.agent_threads import AgentThreads
    from ..threads.timers import Timers
    from ..wire.payload import Labels
    from .codec import Codec

OPEN, GONE = LinkState.OPEN, LinkState.GONE
PLAIN_OR_ERROR = Flag.PLAIN | Flag.ERROR
LONG_TIMEOUT_SECONDS = 5.0  # the reason of a shorter time-out is not looked for: programs try again by it
TOLD_OTHERWISE = (AgentClosedError, RpcCancelledError, WorkerLostError)  # not told for each call: see ``unseen.py``


Prepared: TypeAlias = (
    "tuple[PendingCall, Peer, list[Any] | None]"  # a request to be sent, and its frame if it is encoded
)


class Caller:
    """Calls of one agent.

    Args:
        state: the agent's state.
        peers: the workers of the job.
        sessions: for the routes of requests.
        control: for cancels.
        codec: packs requests and opens answers.
        timers: for deadlines.
        threads: for callbacks, and for answers whose opening may run user code.

    Attributes:
        waits: waits for futures, with a time-out.
        on_long_wait: called with the names of workers, after a notice that this one waits long for them.
        ask_where: asks where an expired call is at its callee, and calls ``fail_expired`` soon; returns False if it does not.
    """

    def __init__(
        self,
        state: AgentState,
        peers: Peers,
        sessions: Sessions,
        control: ControlChannel,
        codec: Codec,
        timers: Timers,
        threads: AgentThreads,
    ) -> None:
        self._state = state
        self._peers = peers
        self._sessions = sessions
        self._control = control
        self._codec = codec
        self._timers = timers
        self._threads = threads
        self.table = CallTable(timers, self._expired)
        self.waits = TimedWaits(self.table, self, timers)
        self.unseen = UnseenErrors(state.name, timers)
        self.on_long_wait: Callable[[Iterable[str]], object] = lambda names: None
        self.ask_where: Callable[[PendingCall], bool] = lambda call: False
        control.on(Topic.DONE, self._on_done)

    # -- calls begin

    def request(
        self,
        peer: Peer,
        method: int,
        body: Any,
        timeout: float,
        what: object,
        labels: Labels = no_labels,
        notes: dict[int, Any] | None = None,
    ) -> Future[Any]:
        """Send a request; the future holds the answer.

        Args:
            peer: the callee.
            method: number of the method, whose handler answers.
            body: the request's content; captured before this returns.
            timeout: seconds; 0 for none.
            what: its text names the request in error messages: "the call of f on 'b'".
            labels: names the parts of the body in error messages.
            notes: for interceptors (``Attachments.notes``).

        Raises:
            SerializationError: the body cannot be sent.
        """
        return self.begin(peer, method, body, timeout, what, labels, notes).future

    def begin(
        self,
        peer: Peer,
        method: int,
        body: Any,
        timeout: float,
        what: object,
        labels: Labels = no_labels,
        notes: dict[int, Any] | None = None,
        future: Future[Any] | None = None,
        later: list[Prepared] | None = None,
    ) -> PendingCall:
        """Send a request, as ``request`` does, and return the call.

        Args:
            peer, method, body, timeout, what, labels, notes: as for ``request``.
            future: holds the answer, in the place of a new one.
            later: takes the call, for ``send_all``, in the place of sending it now.
        """
        if self._state.closed:
            self._state.check_open()  # raises
        table = self.table
        call = PendingCall(method, next(table.ids), timeout, peer.number)  # ``CallTable.new_call``, without a call
        call.began, call.what, call.future = table.clock.now(), what, Future() if future is None else future
        call.future.canceller, call.future.call = self, (peer.number, call.call_id)
        link = peer.link
        if link.state is GONE:
            call.future.set_exception(peer.lost_error())
            return call
        if notes:
            call.attached = attached = Attachments()
            attached.notes = notes
        self._codec.pack(call, body, peer, labels)
        if thread_role.inside and interrupts_protected():
            self._send_soon(call, peer)
        elif later is not None:
            later.append((call, peer, None))
        else:
            self._send(call, peer)
        return call

    def sends_packed(self) -> bool:
        """Return whether ``begin_packed`` may be called: no interceptor has to see requests, and this thread may send them."""
        return not (self._state.closed or self._codec.speaks() or (thread_role.inside and interrupts_protected()))

    def begin_packed(
        self, peer: Peer, method: int, flags: int, body: Sequence[bytes], timeout: float, future: Future[Any]
    ) -> Prepared:
        """Make a request whose small body is packed and has no attachments, for ``send_all``, if ``sends_packed``.

        Args:
            peer, method, timeout: as for ``request``.
            flags, body: of the message.
            future: holds the answer, and names the request in error messages.
        """
        table, number = self.table, peer.number
        call = PendingCall(method, next(table.ids), timeout, number)  # ``CallTable.new_call``, without a call
        call.began, call.what, call.future = table.clock.now(), future, future
        future.canceller, future.call = self, (number, call.call_id)
        call.flags = flags
        frame = b"".join((FRAME_HEAD.pack(call.kind, flags, method, call.call_id, timeout), *body))
        call.size = len(frame)
        return call, peer, [frame]

    def send_all(self, calls: Sequence[Prepared]) -> None:
        """Send calls that ``begin`` has put off, or ``begin_packed`` made.

        All are encoded before the first leaves: a worker that a frame wakes may take this core, and empties its caches.
        """
        frames = [parts or attempt(encode, call)[0] for call, _, parts in calls]
        for call, _, _ in calls:  # the answer to the first may make the others needless: then they are found here
            self.table.add(call)
        for (call, peer, _), parts in zip(calls, frames):
            if call.call_id in self.table.calls:
                self._send(call, peer, parts, added=True)  # encodes it again if that failed

    def _send(self, call: PendingCall, peer: Peer, parts: list[Any] | None = None, added: bool = False) -> None:
        """Send a call, by another session if one closes meanwhile, or fail it; ``added``: it is in the table already.

        Raises:
            BaseException: Ctrl-C ended its wait for room, or a signal handler raised something.
        """
        role, link, tried, sent = thread_role, peer.link, 0, False
        outer, role.inside = role.inside, True
        try:
            if not added:
                self.table.add(call)
            parts = parts or encode(call)
            while True:
                session = link.dialed if link.state is OPEN else None
                if session is None:
                    session = self._sessions.route(peer)
                call.session = link.latest = session
                flow: Flow = session.flow
                call.future.driver = session.reading
                if sent := session.send(parts, call) if flow.admit(call) else flow.send(call, parts, self._unsent):
                    break
                flow.put_back(call)  # that flow control may go on with the next session
                call.session = None
                tried += 1
                if not peer.found_closed(session, self._timers.now(), tried):
                    break
        except BaseException as error:
            own = isinstance(error, Exception) and not raised_by_handler(error)
            self._failed(call, error)
            if not own:
                raise
            return
        finally:
            role.inside = outer
            call.pickled = ()  # ``drop_content``, without a call
            if (attached := call.attached) is not NO_ATTACHMENTS:
                attached.tensors = attached.references = attached.buffers = ()
        if not sent or link.state is GONE or self._state.closed:
            self._not_sent(call, peer)

    def _send_soon(self, call: PendingCall, peer: Peer) -> None:
        """Let the loop's thread send a call of a signal handler or a finalizer: its own thread may hold a lock for that."""
        parts = [b"".join(encode(call))]  # its memory may change after this
        call.drop_content()
        self._timers.soon(partial(self._send, call, peer, parts))
        if self._state.closed:  # its timers may have been closed before they got it
            self.fail(call, self._closed_error(call))

    def _failed(self, call: PendingCall, error: BaseException) -> None:
        """Fail a call whose sending raised an error. If a handler raised it in the middle of that, its session is closed."""
        broke, session = broke_protected(error), call.session
        if session is not None and call.state is ADMITTED:
            session.flow.put_back(call)
        if call.state is NEW:
            call.session = None  # nothing of it has left, so that its callee needs no cancel
        if self.table.take(call.call_id):
            # The traceback holds the caller's frames and the references in them: a reference that keeps the error would
            # keep itself alive.
            self.fail(call, error.with_traceback(None))
        if session is not None and broke:
            session.close()

    def _closed_error(self, call: PendingCall) -> AgentClosedError:
        return AgentClosedError(f"worker {self._state.name!r} was closed during {call.what}")

    def _not_sent(self, call: PendingCall, peer: Peer) -> None:
        """Fail a call that was not sent, or whose peer or agent ended while it was sent: no other thread would fail it."""
        if not self.table.take(call.call_id):
            return
        if peer.gone:
            self.fail(call, peer.lost_error())
        elif self._state.closed:
            self.fail(call, self._closed_error(call))
        else:
            name = peer.info.name
            self.fail(call, RpcError(f"no connection to worker {name!r} stays open; {call.what} was not sent"))

    def _unsent(self, call: Outgoing) -> None:
        """Fail a call that was queued for a session that closed."""
        if (taken := self.table.take(call.call_id)) is not None:
            self.fail(taken, RpcError(f"the connection closed before {call.what} was sent; call again"))

    def landing(self, session: Session, front: memoryview, size: int) -> Landing | None:
        """Return where the large piece of an answer is to be received (``LaneListener.landing``). In a lane's thread.

        Args:
            session, front, size: as for ``LaneListener.landing``.
        """
        kind, _, _, call_id, _ = FRAME_HEAD.unpack_from(front)
        call = self.table.calls.get(call_id) if kind == FrameKind.REPLY else None
        if call is None or call.session is not session or not isinstance(call.future, LandingFuture):
            return None
        landing = call.future.landing
        return landing if len(landing.memory) == size else None

    # -- calls end

    def complete(self, message: Incoming) -> None:
        """Complete the call that ``message`` answers.

        Runs in a reader's thread. An answer that cannot run user code is opened here, so that no other thread is between this
        one and the waiting caller. Other answers are opened by the thread that waits for them, if that is the reader, or else
        in a thread made for it, like all callbacks.
        """
        calls = self.table.calls
        call = calls.get(message.call_id)
        try:
            del calls[message.call_id]  # ``CallTable.take``, without a call
        except KeyError:
            call = None
        if call is None:
            message.session.flow.used(message.size)
            return  # it timed out or failed before; references in the answer are dropped with the message
        call.state, handled = ANSWERED_CALL, False
        try:
            if call.attached.extras:
                self._codec.delivered(call)
            plain = message.flags & PLAIN_OR_ERROR == Flag.PLAIN
            if plain and (not (message.extras or message.flags & Flag.GUEST) or self._codec.is_plain(message)):
                self._complete(call, message)
            else:
                # Unpickling may make calls: the agent is the current one meanwhile.
                task = partial(self._threads.new_context().run, self._complete, call, message)
                if thread_role.awaited is call.future:
                    thread_role.task = task
                else:
                    self._threads.run_later(task)
            handled = True
        finally:
            if not handled:  # a signal handler has raised something
                self._not_read(call)

    def complete_with_none(self, call_ids: Iterable[int]) -> None:
        """Complete the calls of these ids, which were answered with ``None``. Runs in a reader's thread."""
        calls, take = self.table.calls, self.table.take
        for call_id in call_ids:
            if (call := calls.get(call_id)) is None:
                continue
            # First: if a signal handler raises something before the call is taken, it fails with its session. And an
            # interceptor, which is told next, needs no callback, and no thread for it.
            callbacks = call.future.try_finish()
            if take(call_id) is not None:
                call.state = ANSWERED_CALL
                if call.attached.extras:
                    self._codec.delivered(call)
            if callbacks:
                self.call_back(callbacks)

    def _on_done(self, peer: Peer, payload: bytes) -> None:
        """Complete calls that were answered with ``None`` in a control message (``ServerCall.done_soon``)."""
        self.complete_with_none(decode_ids(payload))

    def _not_read(self, call: PendingCall) -> None:
        self._finish(call, error=RpcError(f"the thread that read the answer to {call.what} was interrupted"))

    def _complete(self, call: PendingCall, message: Incoming) -> None:
        value: Any = None
        error: BaseException | None = None
        opened = False
        try:
            value = self._codec.open(message)
            if message.flags & Flag.ERROR:
                error = rebuild_failure(value)
                value = self.unseen.watch((call.what, error)) if call.method == Method.CALL else None
            opened = True
        except Exception as problem:
            error, opened = problem, True
        finally:
            message.session.flow.used(message.size)
            if not opened:  # Ctrl-C in the user's code, or a signal handler has raised something
                self._not_read(call)
        if callbacks := call.future.try_finish(value, error):  # ``_finish``, without a call
            self.call_back(callbacks)
        if error is not None and raised_by_handler(error):
            raise error

    def _finish(self, call: PendingCall, value: Any = None, error: BaseException | None = None) -> None:
        if callbacks := call.future.try_finish(value, error):  # ``None`` if its user has completed it
            self.call_back(callbacks)

    def call_back(self, callbacks: list[Callable[[], object]]) -> None:
        """Run callbacks in a thread made for them."""
        self._threads.run_later(partial(run_callbacks, callbacks))

    def fail(self, call: PendingCall, error: BaseException) -> None:
        """Fail a call that was taken out of the table."""
        # First: interceptors, which are called next, look at the future.
        self._finish(call, self.unseen.watch((call.what, error)) if _is_told(call, error) else None, error)
        if call.to >= 0:
            self._cancel(call)
            if call.state is WRITTEN or call.state is NEW:
                call.state = FAILED
            self._codec.not_delivered(call)

    def _cancel(self, call: PendingCall) -> None:
        """Drop a call that waits to be sent; if it was sent, tell the callee that the answer is not needed."""
        flow: Flow | None = None if (session := call.session) is None else session.flow
        if flow is None or flow.cancel(call):
            return
        peer = self._peers.at(call.to)
        if not (peer.gone or self._state.closed or call.flags & Flag.KEEP):
            self._control.post(peer, Topic.CANCEL, encode_ids([call.call_id]))

    def cancel(self, future: Future[Any]) -> bool:
        """Fail the call under way, or the wait, that a future belongs to (``core.futures.Canceller``)."""
        # This looks at all calls: cancels are rare, and an index would cost time in every call.
        found = self.table.find(lambda call: call.future is future)
        return any(self.give_up(call, RpcCancelledError(f"{call.what} was cancelled")) for call in found)

    def give_up(self, call: PendingCall, error: Exception) -> bool:
        """Fail a call, unless it is no longer under way; return whether it was."""
        if (taken := self.table.take(call.call_id)) is not None:
            self.fail(taken, error)
        return taken is not None

    def fail_where(self, condition: Callable[[PendingCall], bool], error: Callable[[PendingCall], Exception]) -> None:
        """Fail the calls under way for which ``condition`` is true."""
        for call in self.table.find(condition):
            self.give_up(call, error(call))

    def close(self, reason: str) -> None:
        """Fail all calls: the agent was closed."""
        self.fail_where(
            lambda call: True,
            lambda call: AgentClosedError(f"worker {self._state.name!r} cannot finish {call.what}: {reason}"),
        )
        self.unseen.close()

    def peer_lost(self, peer: Peer) -> None:
        """Fail the calls to a peer that is gone."""
        self.fail_where(lambda call: call.to == peer.number, lambda call: peer.lost_error())

    def link_cut(self, peer: Peer) -> None:
        """Fail the calls to a peer that this worker cannot reach."""
        self.fail_where(lambda call: call.to == peer.number, lambda call: peer.cut_error())

    def redialed(self, peer: Peer, session: Session) -> None:
        """Fail the calls on former sessions to a peer: ``session`` is open now.

        Calls with ``Flag.KEEP`` stay, because other workers may rely on them: their answer is a control message, and their
        sender asks whether they arrived.
        """
        self.fail_where(
            lambda call: call.to == peer.number and call.session not in (None, session) and not call.flags & Flag.KEEP,
            lambda call: RpcError(
                f"the connection to worker {peer.info.name!r} broke during {call.what}; it may or may not have run there"
            ),
        )

    def time_out(self, call: PendingCall, seconds: float) -> None:
        """Fail a call without a time-out of its own as if it had had one, of so many seconds, if it is still under way."""
        call.timeout = seconds
        if self.table.take(call.call_id):
            self._expired(call)

    def _expired(self, call: PendingCall) -> None:
        if not (_is_long(call) and self.ask_where(call)):
            self.fail_expired(call)

    def fail_expired(self, call: PendingCall, where: str = "") -> None:
        """Fail a call that has expired; ``where`` says where it is at its callee, if that is known."""
        told = f" ({where})" if where else self._whereabouts(call)
        text = f"{call.what} got no answer within {call.timeout:g} s{told}; give it longer with timeout=, or "
        self.fail(call, RpcTimeoutError(f"{text}GrpcRpcBackendOptions(rpc_timeout=) for all calls"))
        if _is_long(call):
            self.on_long_wait([self._peers.name(call.to)])

    def _whereabouts(self, call: PendingCall) -> str:
        if call.to < 0:
            return ""  # it waits for an event at this worker, or for several workers
        if reason := why_unready(call, self.table.calls):
            return f" ({reason})"
        return (
            " (it may still run there)" if self._peers.at(call.to).link.state is OPEN else " (no connection was open)"
        )


def _is_long(call: PendingCall) -> bool:
    return call.to >= 0 and call.timeout >= LONG_TIMEOUT_SECONDS and call.method not in QUESTIONS


def _is_told(call: PendingCall, error: BaseException) -> bool:
    """Return whether the error of a call is told if nothing looks at it (``unseen.py``)."""
    told = isinstance(error, RpcError) and not isinstance(error, TOLD_OTHERWISE)
    return told and call.method == Method.CALL and not call.future.done()
