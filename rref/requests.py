"""References in requests: forked when a message leaves, adopted when it arrives; creating calls and fetches, answered.

A message's references are adopted before anything in it is unpickled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

from ..core.futures import Future, complete_once, copy_outcome
from ..rpc.extend import (
    Agent,
    Flag,
    Incoming,
    Interceptor,
    Outgoing,
    RemoteTraceback,
    ServerCall,
    check_future,
    is_async_execution,
    open_request,
    traceback_text,
)
from .context import NUMBER, RRefContext
from .ids import GlobalId
from .numbers import Method
from .rref import RRef
from .transfers import Transfer, created_by, decode_transfer, encode_transfer


class ReferenceInterceptor(Interceptor):
    """Gives each message with references a transfer."""

    number = NUMBER

    def __init__(self, context: RRefContext) -> None:
        self.context = context

    def sending(self, message: Outgoing) -> None:
        """Fork every reference in the message. ``remote`` made the transfer of a creating call, which has none otherwise."""
        transfer: Transfer | None = message.notes.get(NUMBER)
        if transfer is None:
            if not message.references:
                return
            transfer = Transfer(self.context.key(message.to))
        transfer.forks = [reference.sendable_fork(self.context) for reference in message.references]
        self.context.send(transfer)
        if transfer.creates:
            message.flags |= Flag.KEEP  # also when it is late: others may know of the reference by then
        message.notes[NUMBER] = transfer
        message.extras[NUMBER] = encode_transfer(transfer)

    def arrived(self, message: Incoming) -> bool:
        """Adopt the references; False for a message that its sender has cancelled."""
        extra = message.extras.get(NUMBER)
        if extra is None:
            return True
        transfer = decode_transfer(extra, self.context.key(message.sender))
        self.context.receive(transfer)
        message.references = [RRef._of(self.context, fork) for fork in transfer.forks]
        return transfer.adopted

    def delivered(self, message: Outgoing) -> None:
        """Note that the receiver has adopted the references."""
        transfer = message.notes.pop(NUMBER, None)
        if transfer is not None:
            self.context.delivered(transfer)

    def not_delivered(self, message: Outgoing) -> None:
        """Take the references back, unless they arrived after all."""
        transfer = message.notes.pop(NUMBER, None)
        if transfer is not None:
            self.context.not_delivered(transfer)


def serve_references(context: RRefContext) -> None:
    """Let the agent of ``context`` answer creating calls and fetches."""
    context.agent.server.serve(Method.CREATE, partial(_serve_create, context))
    context.agent.server.serve(Method.FETCH, partial(_serve_fetch, context))


def _serve_create(context: RRefContext, call: ServerCall) -> None:
    """Reply that the reference exists, then make its value. The outcome belongs to the value, not to the call."""
    rref_id = created_by(call.extras[NUMBER])
    request = _Opened(call)
    call.reply(None)
    value = context.created_value(rref_id)
    if value is None:
        return  # it was freed meanwhile
    try:
        function, args, kwargs = request.result()
        result = function(*args, **kwargs)
        _complete(context.agent, value, result, is_async_execution(function))
    except BaseException as error:
        complete_once(value, error=_storable(error, context.agent.name))


def _serve_fetch(context: RRefContext, call: ServerCall) -> None:
    """Answer with the value, as soon as it exists."""
    rref_id = GlobalId(*call.open())
    call.what = f"to_here() of RRef {rref_id}"
    call.reply_with(context.value(rref_id, context.key(call.sender)), is_future=True)


class _Opened:
    """The opened body of a call, or the error of opening it: the creation is answered before either is used."""

    def __init__(self, call: ServerCall) -> None:
        self._request: Any = None
        self._error: Exception | None = None
        try:
            self._request = open_request(call.open())
        except Exception as error:
            self._error = error

    def result(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """Return the function and its arguments."""
        if self._error is not None:
            raise self._error
        request, self._request = self._request, None
        return request


def _complete(agent: Agent, value: Future[Any], result: Any, is_future: bool) -> None:
    if is_future:
        check_future(result).add_done_callback(lambda future: copy_outcome(future, value))
    elif inspect.iscoroutine(result):
        outcome = agent.threads.run_coroutine(result, copy_context())
        outcome.add_done_callback(lambda future: _store_outcome(future, value, agent.name))
    else:
        complete_once(value, result)


def _store_outcome(outcome: Future[Any], value: Future[Any], worker: str) -> None:
    error = outcome.exception()
    if error is None:
        complete_once(value, outcome.value())
    else:
        complete_once(value, error=_storable(error, worker))


def _storable(error: BaseException, worker: str) -> BaseException:
    """Return an exception to keep: with its traceback as text, for its frames hold arguments, and the future that keeps it."""
    error.__cause__ = RemoteTraceback(worker, traceback_text(error))
    error.__context__ = None
    return error.with_traceback(None)
