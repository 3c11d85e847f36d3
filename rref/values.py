"""Values of references: a creating call asks the owner to make one; later it is used at the owner, or a copy is fetched."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..base.errors import RpcError
from ..core.extend import profiles, record_call
from ..core.futures import Future, complete_once, copy_error
from ..rpc.extend import Agent, event_name, label_parts, request_body, resolve_timeout
from .context import REFERENCE_EXTRA, RRefContext, key_of, name_of
from .forks import Fork
from .numbers import ReferenceMethod
from .transfers import ReferenceTransfer


def create(context: RRefContext, to: Any, function: Callable[..., Any], args: Any, kwargs: Any, timeout: float) -> Fork:
    """Let the worker ``to`` make a value and own it; return this worker's fork of the reference to the value.

    Args:
        context: the references of this agent.
        to: name, rank, ``WorkerInfo`` or ``Peer`` of a worker.
        function: makes the value.
        args: positional arguments, or ``None``.
        kwargs: keyword arguments, or ``None``.
        timeout: seconds within which the value must have been made, as in ``rpc.remote``.
    """
    agent = context.agent
    peer = agent.peers.find(to)
    seconds = resolve_timeout(agent, timeout)
    body, name = request_body(peer, function, args, kwargs)
    transfer = ReferenceTransfer(key_of(peer), creates=True)
    what = f"remote({name}) on worker {peer.info.name!r}"
    request = partial(
        agent.caller.request,
        peer,
        ReferenceMethod.CREATE,
        body,
        seconds,
        what,
        label_parts,
        notes={REFERENCE_EXTRA: transfer},
    )
    answer = None
    try:
        answer = record_call(event_name("rpc_remote", function, agent, peer), request) if profiles.get() else request()
    finally:
        if (
            answer is None and transfer.created is not None
        ):  # the message was refused, or Ctrl-C ended the wait for room
            context.dropped.add(transfer.created)
    if transfer.created is None:  # the worker is gone
        answer.wait()
        raise RpcError(f"{what} was not sent")
    if context.places is not None:
        context.places.note(transfer.created.rref_id)
    return transfer.created


def fetch(context: RRefContext, fork: Fork, seconds: float) -> Future[Any]:
    """Return a future of the value: at its owner the value itself, elsewhere a copy.

    Args:
        context: the references of this agent.
        fork: fork of the reference.
        seconds: the time-out; 0 for no limit.

    Raises:
        RpcError: the reference has no value.
    """
    caller, what = context.agent.caller, Fetching(fork, context.agent)
    if fork.owner == context.me:
        return caller.waits.with_deadline(own_value(context, fork), seconds, what)
    return _request(context, fork, seconds, what)


def _request(context: RRefContext, fork: Fork, seconds: float, what: object) -> Future[Any]:
    fork.check()
    agent = context.agent
    peer = agent.peers.at(fork.owner.number)
    # The owner may not have registered the fork yet. Then its name is for the error if there is no value.
    asked = (*fork.rref_id, *fork.fork_id) if fork.awaits_owner else tuple(fork.rref_id)
    request = partial(agent.caller.request, peer, ReferenceMethod.FETCH, asked, seconds, what)
    if not profiles.get():
        return request()
    return record_call(f"to_here#({agent.name})->({peer.info.name})", request, blocking=True)


def own_value(context: RRefContext, fork: Fork) -> Future[Any]:
    """Return the future of a value of this worker. It fails if the creating call that makes the value fails.

    An error is copied. The owner keeps the original, and raising that would add the frames of each use to its traceback.
    """
    creating = fork.call is not None  # first, because a fork without a call has its error already, if there is one
    try:
        value = context.value(fork.rref_id)
    except RpcError:
        fork.check()  # its error says why there is no value
        raise
    if value.done() and value.exception() is None and fork.error is None:
        return value
    result: Future[Any] = Future()
    if creating or fork.error is not None:
        fork.settled.add_done_callback(lambda _: _pass_on_error(fork, result))
    value.add_done_callback(lambda done: _copy_outcome(done, result))
    return result


def wait_for_value(context: RRefContext, value: Future[Any], what: object) -> Any:
    """Return a value of this worker. Blocks until it is made, up to the agent's ``rpc_timeout``.

    Args:
        context: the references of this agent.
        value: the future of the value.
        what: its text names the wait in errors.

    Raises:
        RpcTimeoutError: the value was not made in time.
        Exception: a copy of the error of the function that makes the value.
    """
    if value.done() and value.exception() is None:
        return value.value()
    result: Future[Any] = Future()
    value.add_done_callback(partial(_copy_outcome, target=result))
    agent = context.agent
    try:
        return agent.caller.waits.with_deadline(result, agent.rpc_timeout, what).wait()
    finally:
        del result  # the error's traceback holds this frame


class Fetching:
    """Name of a wait for a value, for errors. It keeps no reference, and its text is made when it is asked for."""

    __slots__ = ("_agent", "_fork")

    def __init__(self, fork: Fork, agent: Agent) -> None:
        self._fork = fork
        self._agent = agent

    def __str__(self) -> str:
        return f"to_here() of {text_of(self._fork, self._agent)}"


def text_of(fork: Fork, agent: Agent) -> str:
    """Return the text that names a reference in messages and in ``repr``."""
    kind = "OwnerRRef" if fork.owner.number == agent.number else "UserRRef"
    return f"{kind}({fork.rref_id} on {name_of(agent, fork.owner)!r})"


def _pass_on_error(fork: Fork, target: Future[Any]) -> None:
    if fork.error is not None:
        complete_once(target, error=copy_error(fork.error))


def _copy_outcome(source: Future[Any], target: Future[Any]) -> None:
    error = source.exception()
    complete_once(target, source.value() if error is None else None, error and copy_error(error))


def type_of_value(value: Future[Any]) -> type:
    """Return the type of a future's value, or raise its exception."""
    try:
        return type(value.value())
    finally:
        del value  # as in Future.value()
