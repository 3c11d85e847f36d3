"""``StreamSender``: the caller's side of exactly-once calls. It keeps them, and sends them again where needed.

Calls of one stream leave in any order and are put in order by the callee. When a call was not answered because its callee was
lost or the link was cut, the stream asks the callee, as soon as one of that name is there, how far it is, and sends the rest.
"""

from __future__ import annotations

import math
import secrets
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from ...base.errors import AgentClosedError, RpcError, RpcTimeoutError, SerializationError, UnknownWorkerError
from ...core.futures import Future, complete_once, copy_error
from ..functions.calling import label_parts, text_of
from ..group.membership import MembershipEvents
from ..retries.retrying import may_go_again
from ..wire.function_names import reference
from ..wire.messages import Method
from .applied import MissingCalls
from .applying import NO_FUNCTION, AppliedAnswer, missing_error, progress, receive, running_stream
from .kept import KeptCall, KeptCalls

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.dispatch import PendingCall
    from ..links.peer import Peer

KEPT_CALLS = 1000
KEPT_BYTES = 256 << 20
ASK_AGAIN_SECONDS = 5.0  # for a checkpoint
HOW_FAR_AGAIN_SECONDS = 0.1  # after a callee could not be asked how far it is


def short(request: tuple[str, Any, Any]) -> str:
    """Return the name of a call's function without its module."""
    return request[0].rpartition(":")[2]


def find_callee(agent: Agent, to: Any) -> Peer | None:
    """Return the worker that a user named; ``None`` for a name that no worker has had, and one of a dynamic group may get.

    Args:
        agent: the caller.
        to: name, rank or ``WorkerInfo``.

    Raises:
        UnknownWorkerError: there is no such worker, and none can come.
    """
    try:
        return agent.peers.find(to)
    except UnknownWorkerError:
        if agent.state.dynamic and isinstance(to, str):
            return None
        raise


class _Stream:
    """Calls of one stream to one callee.

    Args:
        callee: its name.
        origin, token: as in ``StreamKey``.
        window: the calls that are kept.
    """

    def __init__(self, callee: str, origin: str, token: str, window: KeptCalls) -> None:
        self.callee = callee
        self.origin, self.token = origin, token
        self.window = window
        self.lock = threading.Lock()  # guards the window and the attributes below
        self.outcomes: dict[int, Future[Any]] = {}
        self.changed: Future[None] = Future()  # completes when the window has changed
        self.resuming = False  # the callee is being asked how far it is: calls wait until it has answered
        self.errors: dict[int, BaseException] = {}  # answers to calls that may have been applied or not
        self.asked = False  # to save a checkpoint

    def news(self) -> Future[None]:
        """Note that the window has changed, and return the future to complete when the lock is free."""
        # lock held
        changed, self.changed = self.changed, Future()
        return changed


class StreamSender:
    """Exactly-once calls of one agent.

    Args:
        agent: the agent.

    Attributes:
        token: names the streams that this worker begins; a part of its checkpoints.
        most_calls, most_bytes: how much of one stream is kept.
    """

    def __init__(self, agent: Agent) -> None:
        self.token = secrets.token_hex(8)
        self.most_calls, self.most_bytes = KEPT_CALLS, KEPT_BYTES
        self._agent = agent
        self._lock = threading.Lock()
        self._streams: dict[tuple[str, str, str], _Stream] = {}
        self._goes_back = False  # there are checkpoints of this worker, to which it may go back
        agent.losses.on_lost.append(self._callee_lost)

    def streams(self) -> list[_Stream]:
        """Return the streams that were begun."""
        with self._lock:
            return list(self._streams.values())

    def call(self, callee: str, request: tuple[str, Any, Any], size: int, seconds: float) -> Future[Any]:
        """Begin a call, and return the future of its result. Waits for room where too much is kept.

        Args:
            callee: name of the worker.
            request: name of the function, arguments, named arguments.
            size: bytes of the arguments.
            seconds: time-out; 0 for none.
        """
        clock = self._agent.timers.program
        ends, stream, what = clock.now() + seconds, self._stream(callee), text_of(short(request), callee)
        outcome: Future[Any] = Future()
        while isinstance(kept := self._keep(stream, request, size, outcome), Future):
            if not self.wait_for_news(stream, kept, ends if seconds else math.inf):
                raise RpcTimeoutError(
                    f"{what} was not sent: {stream.window} are kept, because no checkpoint of worker {callee!r} has them; "
                    "let it save more often, or raise the bounds with rpc.call_journal().keep_at_most"
                )
        self._send(stream, kept)
        left = max(ends - clock.now(), 1e-3) if seconds else 0.0
        return self._agent.caller.waits.with_deadline(outcome, left, what)

    def _stream(self, callee: str) -> _Stream:
        outer = running_stream.get()
        origin, token = "", self.token
        if outer is not None:  # the same call has the same number when it runs again
            origin, token = f"{outer.origin}>{outer.caller}".lstrip(">"), outer.token
            if callee == self._agent.name:
                raise RpcError(
                    "an exactly-once call cannot make another one to its own worker: call the function itself"
                )
        with self._lock:
            if (found := self._streams.get((callee, origin, token))) is None:
                window = KeptCalls(self.most_calls, self.most_bytes)
                if self._goes_back:
                    window.keep_results()
                found = self._streams[callee, origin, token] = _Stream(callee, origin, token, window)
            return found

    def _keep(
        self, stream: _Stream, request: tuple[str, Any, Any], size: int, outcome: Future[Any]
    ) -> KeptCall | Future[None]:
        """Keep a call; if there is no room, return the future that completes when there may be."""
        with stream.lock:
            room = stream.window.has_room(size)
            if room:
                call = stream.window.add(request, size)
                stream.outcomes[call.number] = outcome
            ask = stream.window.half_full() and not stream.asked
            stream.asked |= ask
            changed = stream.changed
        if ask:
            self._ask(stream)
        return call if room else changed

    def wait_for_news(self, stream: _Stream, changed: Future[None], ends: float) -> bool:
        """Wait until the window has changed; after a few seconds the callee is to be asked again. False after the deadline.

        Args:
            stream: its window.
            changed: completes when it has.
            ends: the deadline, in the seconds of the program's clock.
        """
        left = ends - self._agent.timers.program.now()
        try:
            changed.wait(max(min(left, ASK_AGAIN_SECONDS), 1e-3))
        except TimeoutError:
            stream.asked = False
            return left > ASK_AGAIN_SECONDS
        return True

    def unsaved(self, stream: _Stream) -> Future[None] | None:
        """Ask the callee to save the calls of a stream; ``None`` if all are, else a future as of ``wait_for_news``."""
        with stream.lock:
            if stream.window.is_empty():
                return None
            changed, ask, stream.asked = stream.changed, not stream.asked, True
        if ask:
            self._ask(stream)
        return changed

    def bound(self, calls: int, size: int) -> None:
        """Keep at most so many calls and bytes of each stream."""
        self.most_calls, self.most_bytes = calls, size
        for stream in self.streams():
            stream.window.most_calls, stream.window.most_bytes = calls, size

    # -- calls leave, answers come

    def _send(self, stream: _Stream, kept: KeptCall) -> None:
        peer, window = find_callee(self._agent, stream.callee), stream.window
        with stream.lock:
            if stream.resuming:
                return  # it is sent when the callee has answered
            at_once = peer is not None and not peer.gone and window.goes_to(kept, peer.number)
            numbers = (stream.origin, stream.token, kept.number, window.oldest, window.results_from)
            if at_once and peer is not None:
                window.sent(kept.number, peer.number)
        if peer is None or not at_once:
            self.resume(stream)
            return
        what = text_of(short(kept.request), stream.callee)
        try:
            call = self._begin(peer, receive, (*numbers, *kept.request), what)
        except SerializationError as error:
            kept.request = (NO_FUNCTION, (), {})  # the callee does not wait for this number
            self._complete(stream, kept.number, error=error)
            call = self._begin(peer, receive, (*numbers, *kept.request), what)
        except Exception:
            self._failed(stream, kept.number, peer)
            raise
        if (outcome := stream.outcomes.get(kept.number)) is not None:
            outcome.driver = call.future.driver  # the thread that waits reads the answer
        call.future.add_done_callback(partial(self._ended, stream, kept.number, peer, call))

    def _begin(self, peer: Peer, function: Any, args: tuple[Any, ...], what: str) -> PendingCall:
        body: tuple[Any, ...] = (reference(function, False), args, {})
        return self._agent.caller.begin(peer, Method.CALL, body, 0.0, what, label_parts)

    def _ended(
        self, stream: _Stream, number: int, peer: Peer, call: PendingCall, future: Future[AppliedAnswer]
    ) -> None:
        error = future.exception()
        if error is not None:
            self._failed(stream, number, peer)
        if isinstance(error, AgentClosedError) and self._agent.closed:
            self._complete(stream, number, error=error)
        elif error is not None and may_go_again(call, error):
            self.resume(stream)
        elif error is not None:
            self._ended_with(stream, number, error)
        else:
            self._answered(stream, number, peer, future.value())

    @staticmethod
    def _failed(stream: _Stream, number: int, peer: Peer) -> None:
        with stream.lock:
            stream.window.failed(number, peer.number)

    def _ended_with(self, stream: _Stream, number: int, error: BaseException) -> None:
        """Ask the callee whether a call was applied that ended with an exception: its function's, or one from before that."""
        with stream.lock:
            again = number in stream.errors
            stream.errors[number] = error
        if again:
            self._agent.timers.after(HOW_FAR_AGAIN_SECONDS, self.resume, stream)
        else:
            self.resume(stream)

    def _answered(self, stream: _Stream, number: int, peer: Peer, answer: AppliedAnswer) -> None:
        with stream.lock:
            error = stream.errors.pop(number, None)
            stream.window.answered(number)
            if not peer.gone:  # another incarnation may have fewer
                self._durable(stream, answer.durable)
            changed = stream.news()
        complete_once(changed)
        if answer.problem:
            applied = f"call {number} of this worker to worker {stream.callee!r} was applied before"
            self._complete(stream, number, error=error or RpcError(f"{applied}, and {answer.problem}"))
        else:
            self._complete(stream, number, answer.result)

    def _complete(self, stream: _Stream, number: int, result: Any = None, error: BaseException | None = None) -> None:
        with stream.lock:
            outcome = stream.outcomes.pop(number, None)
        if outcome is not None:
            complete_once(outcome, result, error)

    def _durable(self, stream: _Stream, end: int) -> None:
        # lock held
        if end > stream.window.durable:
            stream.window.made_durable(end)
            stream.asked = False

    # -- the callee has begun anew

    def _callee_lost(self, peer: Peer) -> None:
        """Send its successor what it lacks, also if no call waits: it may have answered calls that no checkpoint has."""
        for stream in self.streams():
            if stream.callee == peer.info.name and not stream.window.is_empty():
                self.resume(stream)

    def resume(self, stream: _Stream) -> None:
        """Send the calls again that the callee lacks, when it is there."""
        with stream.lock:
            if stream.resuming:
                return
            stream.resuming = True
        self._wait_for_callee(stream)

    def _wait_for_callee(self, stream: _Stream) -> None:
        try:
            present = self._agent.part(MembershipEvents).present([stream.callee], 0.0)
        except Exception as error:
            self._give_up(stream, error)
            return
        present.add_done_callback(partial(self._found, stream))

    def _found(self, stream: _Stream, present: Future[Any]) -> None:
        if (error := present.exception()) is not None:
            self._give_up(stream, error)
        else:
            self._agent.threads.run_later(partial(self._ask_how_far, stream))

    def _ask_how_far(self, stream: _Stream) -> None:
        try:
            peer = self._agent.peers.find(stream.callee)
            call = self._begin(
                peer, progress, (stream.origin, stream.token, False), f"a question to worker {stream.callee!r}"
            )
        except Exception as error:
            self._give_up(stream, error)
            return
        call.future.add_done_callback(partial(self._answered_how_far, stream, peer))

    def _answered_how_far(self, stream: _Stream, peer: Peer, future: Future[tuple[int, int]]) -> None:
        error = future.exception()
        if error is None:
            try:
                self._send_from(stream, peer, *future.value())
            except AgentClosedError as closed:  # meanwhile
                self._give_up(stream, closed)
        elif isinstance(error, AgentClosedError) and self._agent.closed:
            self._give_up(stream, error)
        else:  # it was lost, or has not begun to serve
            self._agent.timers.after(HOW_FAR_AGAIN_SECONDS, self._wait_for_callee, stream)

    def _send_from(self, stream: _Stream, peer: Peer, applied: int, durable: int) -> None:
        with stream.lock:
            missing = MissingCalls(applied, stream.window.oldest)
            self._durable(stream, durable)
            ended = {number: stream.errors.pop(number) for number in list(stream.errors) if number < applied}
            for number in ended:
                stream.window.answered(number)
            calls = stream.window.to_send(peer.number, applied)
            stream.resuming = stream.asked = False
            changed = stream.news()
        complete_once(changed)
        for number, error in ended.items():
            self._complete(stream, number, error=error)
        if missing.first < missing.end:
            self._give_up(stream, missing_error(stream.callee, missing))
            return
        for kept in calls:
            self._send(stream, kept)

    def _give_up(self, stream: _Stream, error: BaseException) -> None:
        """Fail the calls that wait for an answer; they stay kept, and go again with the next call."""
        with stream.lock:
            stream.resuming = False
            stream.window.unreachable()
            outcomes, stream.outcomes = list(stream.outcomes.values()), {}
        for outcome in outcomes:
            complete_once(outcome, error=copy_error(error))

    # -- checkpoints

    def _ask(self, stream: _Stream) -> None:
        """Let the callee save a checkpoint soon. If it has begun anew, it gets the calls first that it lacks."""
        peer = find_callee(self._agent, stream.callee)
        with stream.lock:
            has_all = peer is not None and not peer.gone and stream.window.was_sent_to(peer.number)
        if peer is None or not has_all:
            self.resume(stream)
            return
        try:
            call = self._begin(
                peer, progress, (stream.origin, stream.token, True), f"a request to worker {stream.callee!r}"
            )
        except RpcError:
            return  # this worker has ended
        call.future.add_done_callback(partial(self._asked, stream, peer))

    def _asked(self, stream: _Stream, peer: Peer, future: Future[tuple[int, int]]) -> None:
        if future.exception() is None and not peer.gone:
            self.told_durable(stream, future.value()[1])

    def told_durable(self, stream: _Stream, end: int) -> None:
        """Take the news that a durable checkpoint of the callee has the calls below ``end``."""
        with stream.lock:
            self._durable(stream, end)
            changed = stream.news()
        complete_once(changed)

    def find(self, callee: str, origin: str, token: str) -> _Stream | None:
        """Return a stream, if it was begun.

        Args:
            callee: name of the worker.
            origin, token: as in ``StreamKey``.
        """
        with self._lock:
            return self._streams.get((callee, origin, token))

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint, while no call is made."""
        self._goes_back = True
        return {"token": self.token, "streams": [self._state(stream) for stream in self.streams()]}

    def _state(self, stream: _Stream) -> tuple[str, str, str, dict[str, Any]]:
        with stream.lock:
            return stream.callee, stream.origin, stream.token, stream.window.state()

    def saved(self, state: dict[str, Any]) -> None:
        """Note that a checkpoint with this state is durable."""
        for *place, window in state["streams"]:
            stream = self.find(*place)
            if stream is not None:
                with stream.lock:
                    stream.window.saved(window)

    def load(self, state: dict[str, Any]) -> None:
        """Go back to a state, and send the calls again that its callees lack."""
        self.token, self._goes_back = state["token"], True
        for callee, origin, token, window in state["streams"]:
            stream = _Stream(callee, origin, token, KeptCalls(self.most_calls, self.most_bytes))
            stream.window.load(window)
            with self._lock:
                self._streams[callee, origin, token] = stream
            self.resume(stream)
