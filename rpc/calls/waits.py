"""Reasons, in words, why calls are not answered yet. A call that waits for more than a minute is logged once with its reason.

The caller knows whether a call has left. For the rest it asks the callee, in a request that a reader's thread answers, so that
the answer comes even while all threads for user functions are busy.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...core.errors import RpcError
from ...core.extend import abridged
from ...core.futures import Future, wait_for_outcomes
from ..threads.notices import LongWaits
from ..threads.pool import ThreadPool
from ..wire.messages import Method

if TYPE_CHECKING:
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..threads.agent_threads import AgentThreads
    from .caller import Caller
    from .dispatch import PendingCall
    from .serving import Server, ServerCall

logger = logging.getLogger("telegrad.rpc")
LONG_CALL_SECONDS = 60.0  # a call that waits longer is logged
SHORT_CALL_SECONDS = 0.5  # calls that wait less are not explained
EXPLAIN_SECONDS = 1.0  # how long a callee may take to say why
MOST_EXPLAINED = 32  # calls to explain at a time
BUSY_NAMES = 3  # functions to name


class CallWaits:
    """Part of an agent that explains its calls, and answers its callers' questions about theirs.

    Args:
        peers: the workers of the job.
        caller: the calls under way.
        server: the requests that are served.
        threads: run them.
    """

    def __init__(self, peers: Peers, caller: Caller, server: Server, threads: AgentThreads) -> None:
        self._peers = peers
        self._caller = caller
        self._server = server
        self._threads = threads
        caller.table.notices = LongWaits(server.timers, LONG_CALL_SECONDS, caller.table.since, self._log)
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
                    peer, Method.EXPLAIN, call.call_id, EXPLAIN_SECONDS, f"a question to {peer.info.name!r}", _no_labels
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
        return None

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
            return f"{what} has returned a future that is not complete" if call.parked else f"{what} runs"
        if any(not future.done() for future in call.attached.waits_for):
            return "the owners of references in its arguments have not confirmed them"
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
        return [call for call in started if not call.parked and call.method != Method.EXPLAIN]


def _said(peer: Peer, answer: Future[Any]) -> str:
    error = answer.exception()
    if error is None:
        return f"at worker {peer.info.name!r}, {answer.value()}"
    return f"worker {peer.info.name!r} does not say why ({type(error).__name__})"


def _no_labels(body: Any) -> list[tuple[str, Any]]:
    return []
