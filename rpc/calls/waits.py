"""Reasons, in words, why calls are not answered yet. A call that waits for more than a minute is logged once with its reason.

The caller knows whether a call has left. For the rest it asks the callee, in a request that a reader's thread answers, so that
the answer comes even while all threads for user functions are busy.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...base.words import abridged
from ...core.futures import Future, wait_for_outcomes
from ..threads.notices import LongWaits
from ..threads.pool import ThreadPool
from ..wire.messages import QUESTIONS, Method
from .unready import why_unready

if TYPE_CHECKING:
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..threads.agent_threads import AgentThreads
    from .caller import Caller
    from .dispatch import PendingCall
    from .questions import Questions
    from .server_call import ServerCall
    from .serving import Server

logger = logging.getLogger("telegrad.rpc")
LONG_CALL_SECONDS = 60.0  # a call that waits longer is logged
SHORT_CALL_SECONDS = 0.5  # calls that wait less are not explained
EXPLAIN_SECONDS = 1.0  # how long a callee may take to say why
MOST_EXPLAINED = 32  # calls to explain at a time
BUSY_NAMES = 3  # functions to name
WHERE_SECONDS = 0.2  # by which the error of a time-out may be late, so that it says where the call is
MOST_WHERE = 8  # expired calls that are asked about at a time; the errors of others do not say it
MOST_WHERE_CHARACTERS = 500


class CallWaits:
    """Part of an agent that explains its calls, and answers its callers' questions about theirs.

    Args:
        peers: the workers of the job.
        caller: the calls under way.
        questions: to their callees.
        server: the requests that are served.
        threads: run them.

    Attributes:
        place_of: returns words for the line that a request runs; empty if it is not known. The observer sets it.
    """

    def __init__(
        self, peers: Peers, caller: Caller, questions: Questions, server: Server, threads: AgentThreads
    ) -> None:
        self._peers = peers
        self._caller = caller
        self._questions = questions
        self._server = server
        self._threads = threads
        caller.table.notices = LongWaits(server.timers, LONG_CALL_SECONDS, caller.table.since, self._log)
        self.place_of: Callable[[ServerCall], str] = lambda call: ""
        self._expired: set[int] = set()  # ids of calls that have expired and are asked about
        if isinstance(threads.functions, ThreadPool):  # not in a simulator, where time-outs are exact
            caller.ask_where = self._ask_where
        server.serve(Method.EXPLAIN, self._answer, quick=True)

    def explain(self) -> list[str]:
        """Return a sentence for each of the oldest calls under way. Waits at most a second for the callees' answers."""
        calls = self._caller.table.older_than(SHORT_CALL_SECONDS)[:MOST_EXPLAINED]
        asked = [self._ask(call) for call in calls]
        wait_for_outcomes(asked)
        return [future.value() for future in asked]

    # -- at the caller

    def _log(self, call_id: int, _: bool) -> None:
        if (call := self._caller.table.calls.get(call_id)) is not None:
            self._ask(call).add_done_callback(lambda done: logger.warning("%s", done.value()))
            self._caller.on_long_wait([self._peers.name(call.to)] if call.to >= 0 else [self._peers.me.name])

    def _ask(self, call: PendingCall) -> Future[str]:
        """Return the future of a sentence about a call; it does not fail."""
        begun = f"{call.what} has waited for {self._caller.table.age(call):.0f} s"
        reason = self._reason_here(call)
        if reason is None:
            peer = self._peers.at(call.to)
            try:
                answer = self._caller.request(
                    peer, Method.EXPLAIN, call.call_id, EXPLAIN_SECONDS, f"a question to {peer.info.name!r}"
                )
            except RpcError as error:
                reason = f"worker {peer.info.name!r} cannot be asked why ({error})"
            else:
                return answer.then(lambda done: f"{begun}: {_said(peer, done)}")
        known: Future[str] = Future()
        known.set_result(f"{begun}: {reason}")
        return known

    def _reason_here(self, call: PendingCall) -> str | None:
        if call.to < 0:
            return "it waits for something that happens on this worker, or for several workers"
        peer = self._peers.at(call.to)
        if call.session is None or not (peer.linked or call.to == self._peers.me.number):
            return f"there is no connection to worker {peer.info.name!r} ({peer.describe()['state']})"
        return why_unready(call, self._caller.table.calls) or None

    def _ask_where(self, call: PendingCall) -> bool:
        """Ask where an expired call is, and end it with the answer, after a moment at most; False if that is not asked."""
        if len(self._expired) >= MOST_WHERE or self._reason_here(call) is not None:
            return False
        peer = self._peers.at(call.to)
        what = f"a question to {peer.info.name!r}"
        try:
            answer = self._questions.ask(peer, Method.EXPLAIN, call.call_id, WHERE_SECONDS, what)
        except RpcError:
            return False
        self._expired.add(call.call_id)
        answer.add_done_callback(lambda done: self._time_out(call, peer, done))
        return True

    def _time_out(self, call: PendingCall, peer: Peer, answer: Future[Any]) -> None:
        self._expired.discard(call.call_id)
        known = answer.exception() is None
        self._caller.fail_expired(call, _said(peer, answer)[:MOST_WHERE_CHARACTERS] if known else "")

    # -- at the callee

    def _answer(self, question: ServerCall) -> None:
        key = (question.sender, question.open())
        question.what = "a question why a call waits"
        question.reply(self._reason(key))

    def _reason(self, key: tuple[int, int]) -> str:
        call = self._server.serving.get(key)
        if call is None:
            return "it has not arrived, or its answer is on the way"
        what = call.what or "its function"
        if key not in self._server.waiting:
            return (
                f"{what} has returned a future that is not complete"
                if call.parked
                else f"{what} runs{self.place_of(call)}"
            )
        if any(not future.done() for future in call.attached.waits_for):
            return "the values that it needs are not there yet"
        return self._busy()

    def _busy(self) -> str:
        """Return a text that names the functions which the threads run."""
        pool = self._threads.functions
        running = Counter(call.what or "a function" for call in self._running())
        counted = [f"{name} ({count} times)" if count > 1 else name for name, count in running.most_common()]
        names = abridged(counted, BUSY_NAMES)
        if not isinstance(pool, ThreadPool):
            return f"its executor is busy in {names or 'other work'}"
        counts = pool.counts()
        return f"{counts['running']} of {pool.size} threads busy in {names or 'other work'}"

    def _running(self) -> Iterable[ServerCall]:
        started = [call for key, call in list(self._server.serving.items()) if key not in self._server.waiting]
        return [call for call in started if not call.parked and call.method not in QUESTIONS]


def _said(peer: Peer, answer: Future[Any]) -> str:
    error = answer.exception()
    if error is None:
        return f"at worker {peer.info.name!r}, {answer.value()}"
    return f"worker {peer.info.name!r} does not say why ({type(error).__name__})"
