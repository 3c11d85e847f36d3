"""Driver of one call with ``retry=``: it sends the call, waits for the worker that comes back, and sends it again.

An attempt that was not answered, because the worker was lost or could not be reached, is followed by the next one. An answer
ends the call, also if it is an exception: then the function has run. All of it has one deadline, that of a wait in the table
of calls, so that it also ends with the agent, can be cancelled, and keeps ``shutdown`` waiting.
"""

from __future__ import annotations

import contextvars
from functools import partial
from typing import TYPE_CHECKING, Any

from ...base.errors import (
    AgentClosedError,
    ArgumentTypeError,
    RpcCancelledError,
    RpcError,
    RpcTimeoutError,
    SerializationError,
    UnknownWorkerError,
)
from ...core.extend import profiles, record_call
from ...core.futures import Future, complete_once, copy_error
from ..call_states import ANSWERED_CALL
from ..functions.calling import event_name, label_parts, name_of, request_body, resolve_timeout, text_of
from ..group.membership import MembershipEvents
from ..wire.messages import Method
from .marks import check_idempotent
from .policy import RetryPolicy

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.dispatch import PendingCall

FINAL = (AgentClosedError, RpcCancelledError, RpcTimeoutError, SerializationError, UnknownWorkerError)
LEAST_SECONDS = 1e-3  # of an attempt, because 0 is for ever


def call_with_retries(
    agent: Agent, to: Any, function: Any, args: Any, kwargs: Any, timeout: float, policy: RetryPolicy, api: str
) -> Future[Any]:
    """Ask a worker to run a function, and ask again the worker of that name when it was lost; the future holds the result.

    Args:
        agent, to, function, args, kwargs, timeout, api: as for ``call_function``.
        policy: how often and when.

    Raises:
        ArgumentTypeError: the policy is none.
        ArgumentValueError: the function is not marked.
    """
    if not isinstance(policy, RetryPolicy):
        raise ArgumentTypeError(f"retry= takes a RetryPolicy, such as rpc.RetryPolicy(attempts=5); you gave {policy!r}")
    check_idempotent(function)
    peer = agent.peers.find(to)
    call = _RetriedCall(agent, peer.info.name, (function, args, kwargs), resolve_timeout(agent, timeout), policy)
    if not profiles.get():
        return call.begin()
    return record_call(event_name(api, function, agent, peer), call.begin, blocking=api == "rpc_sync")


def may_go_again(call: PendingCall, error: BaseException) -> bool:
    """Return whether a call has failed because its callee was lost or could not be reached, and not by its own exception."""
    return call.state is not ANSWERED_CALL and isinstance(error, RpcError) and not isinstance(error, FINAL)


class _RetriedCall:
    """Attempts of one call.

    Args:
        agent: the caller.
        to: name of the callee.
        request: function, arguments and named arguments; read again by each attempt.
        seconds: time-out of all attempts; 0 for none.
        policy: how often and when.
    """

    def __init__(
        self, agent: Agent, to: str, request: tuple[Any, Any, Any], seconds: float, policy: RetryPolicy
    ) -> None:
        self._agent = agent
        self._to = to
        self._request = request
        self._seconds = seconds
        self._policy = policy
        self._began = agent.timers.program.now()
        self._failed = 0
        self._attempt: PendingCall | None = None
        self._over = False
        self._outcome: Future[Any] = Future()
        self._context = contextvars.copy_context()  # profiles and gradients of later attempts too

    def __str__(self) -> str:
        text = text_of(name_of(self._request[0]), self._to)
        return f"{text}, of which {self._failed} attempts failed," if self._failed else text

    def begin(self) -> Future[Any]:
        """Send the first attempt, and return the future of the call."""
        self._send()
        result = self._agent.caller.waits.with_deadline(self._outcome, self._seconds, self)
        result.add_done_callback(self._end)
        return result

    def _send(self) -> None:
        peer = self._agent.peers.find(self._to)
        body, name = request_body(peer, *self._request)
        what = text_of(name, peer.info.name)
        call = self._agent.caller.begin(peer, Method.CALL, body, self._left(), what, label_parts)
        self._attempt = call
        self._outcome.driver = call.future.driver  # the thread that waits reads the first answer
        call.future.add_done_callback(partial(self._ended, call))

    def _left(self) -> float:
        """Return the seconds that are left; 0 for no limit."""
        passed = self._agent.timers.program.now() - self._began
        return max(self._seconds - passed, LEAST_SECONDS) if self._seconds else 0.0

    def _ended(self, call: PendingCall, future: Future[Any]) -> None:
        error = future.exception()
        if error is None:
            complete_once(self._outcome, future.value())
            return
        self._failed += 1
        pause = self._policy.pause(self._failed) if may_go_again(call, error) else None
        if pause is None:
            complete_once(self._outcome, error=copy_error(error))
        elif not self._over:
            self._agent.timers.after(pause, self._wait_for_worker)

    def _wait_for_worker(self) -> None:
        """Send again once the worker is there. If it cannot come back, that fails at once."""
        present = self._agent.part(MembershipEvents).present([self._to], self._left())
        present.add_done_callback(self._found)

    def _found(self, present: Future[Any]) -> None:
        if (error := present.exception()) is not None:
            complete_once(self._outcome, error=copy_error(error))
        else:  # in a thread that may run the code of arguments
            self._agent.threads.run_later(partial(self._context.run, self._send_again))

    def _send_again(self) -> None:
        if self._over:
            return
        try:
            self._send()
        except Exception as error:
            complete_once(self._outcome, error=error)
        if self._over and self._attempt is not None:  # it ended meanwhile
            self._agent.caller.cancel(self._attempt.future)

    def _end(self, _: Future[Any]) -> None:
        """Withdraw the attempt under way, if there is one: the call has its result, has timed out, or was cancelled."""
        self._over = True
        if self._attempt is not None and not self._attempt.future.done():
            self._agent.caller.cancel(self._attempt.future)
