"""Creating calls at their caller: it asks the owner to make a value, and has a fork of the reference at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..core.errors import RpcError
from ..core.extend import profiles, record_call
from ..rpc.extend import event_name, label_parts, request_body, resolve_timeout
from .context import REFERENCE_EXTRA, RRefContext, key_of
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
    peer.check_present()
    body, name = request_body(peer, function, args, kwargs)
    transfer = ReferenceTransfer(key_of(peer), creates=True)
    what = f"remote({name}) on worker {peer.info.name!r}"
    seconds = resolve_timeout(agent, timeout)
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
    if transfer.created is None:  # the worker was lost after it was found
        answer.wait()
        raise RpcError(f"{what} was not sent")
    return transfer.created
