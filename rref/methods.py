"""Calls of methods of values: requested by a worker that has a reference, and served by the owner.

A call through a proxy names the value, and passes no reference. The caller's fork keeps the value until the answer has come.
From its arrival on, the request keeps the value too. A body whose arguments are tensors needs no pickle
(``rpc/calls/codec.py``).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..base.errors import RpcError
from ..core.extend import profiles, record_call
from ..core.futures import Future
from ..rpc.extend import ServerCall, is_async_execution, label_parts, resolve_timeout
from .context import REFERENCE_EXTRA, RRefContext, key_of
from .forks import Fork
from .numbers import ReferenceMethod
from .transfers import ReferenceTransfer
from .values import text_of, wait_for_value


def call_method(
    context: RRefContext, fork: Fork, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float, api: str
) -> Future[Any]:
    """Call a method of a value of another worker; the future holds its result.

    Args:
        context: the references of this agent.
        fork: fork of the reference to the value.
        name: name of the method.
        args: positional arguments.
        kwargs: keyword arguments.
        timeout: seconds; 0 for no limit.
        api: name of the function that the user called, for profiles.
    """
    agent = context.agent
    peer = agent.peers.at(fork.owner.number)
    notes = {REFERENCE_EXTRA: ReferenceTransfer(key_of(peer), borrowed=fork)}
    what, seconds = CallOf(context, fork, name), resolve_timeout(agent, timeout)
    request = partial(
        agent.caller.request, peer, ReferenceMethod.METHOD, (name, args, kwargs), seconds, what, label_parts, notes
    )
    if not profiles.get():
        return request()
    return record_call(f"{api}#{name}({agent.name} -> {peer.info.name})", request, blocking=api == "rpc_sync")


class CallOf:
    """Name of a call of a method, for errors. It keeps no reference, and its text is made when it is asked for.

    Args:
        context: the references of this agent.
        fork: fork of the reference to the value.
        name: name of the method.
    """

    __slots__ = ("_context", "_fork", "_name")

    def __init__(self, context: RRefContext, fork: Fork, name: str) -> None:
        self._context = context
        self._fork = fork
        self._name = name

    def __str__(self) -> str:
        agent = self._context.agent
        owner = agent.peers.at(self._fork.owner.number).info.name
        return f"the call of {text_of(self._fork, agent)}.{self._name} on worker {owner!r}"


def serve_methods(context: RRefContext) -> None:
    """Let the agent of ``context`` answer calls of methods."""
    context.agent.server.serve(ReferenceMethod.METHOD, partial(_serve_method, context))


def _serve_method(context: RRefContext, call: ServerCall) -> None:
    future = call.attached.value
    name, args, kwargs = call.open()
    if future is None:
        raise RpcError(
            f"worker {context.agent.name!r} has no value any more to call {name!r} of; keep a reference to it. If you have "
            f"one, the worker that passed it to you was lost before the owner heard of you"
        )
    value = wait_for_value(context, future, f"the value to call {name!r} of")
    method = getattr(value, name)
    call.what = getattr(method, "__qualname__", name)
    result = call.kept(partial(getattr, value, name), method, args, kwargs) if call.kept else method(*args, **kwargs)
    del args, kwargs
    call.reply_with(result, is_async_execution(method))
