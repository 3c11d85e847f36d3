"""An answer at the caller: find the call, open the body, complete the future."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.futures import run_callbacks
from .dispatch import PendingCall
from .messages import Flag, Incoming
from .wire.failures import rebuild_failure
from .wire.payload import make_tensors, unpack

if TYPE_CHECKING:
    from .agent import Agent

SIMPLE = Flag.PLAIN | Flag.EMPTY


def complete_call(agent: Agent, message: Incoming) -> None:
    """Complete the call that ``message`` answers.

    Runs in a reader's thread. What cannot run user code is opened here, so that a waiting caller is woken without a stop
    in another thread; the rest, and all callbacks, go to a thread made for it.
    """
    call = agent.calls.take(message.call_id)
    if call is None:
        return  # it timed out or failed meanwhile; references in the answer are dropped with the message
    if call.message is not None:
        for interceptor in agent.interceptors:
            interceptor.delivered(call.message)
    if message.flags & SIMPLE and not message.flags & Flag.ERROR and not message.extras:
        _complete(agent, call, message)
    else:
        agent.run_later(lambda: _complete(agent, call, message))


def _complete(agent: Agent, call: PendingCall, message: Incoming) -> None:
    value: Any = None
    error: BaseException | None = None
    try:
        value = _open(agent, message)
        if message.flags & Flag.ERROR:
            value, error = None, rebuild_failure(value)
    except Exception as problem:
        error = problem
    if callbacks := call.future.finish(value, error):
        agent.run_later(lambda: run_callbacks(callbacks))


def _open(agent: Agent, message: Incoming) -> Any:
    make_tensors(message)
    for interceptor in agent.interceptors:
        interceptor.opening(message)
    return unpack(message)
