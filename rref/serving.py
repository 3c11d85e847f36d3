"""Answers of an owner: to creating calls, and to those that fetch a value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from ..core.futures import Future, complete_once, copy_outcome
from ..rpc.extend import (
    Agent,
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
from .transfers import created_by


def serve_references(context: RRefContext) -> None:
    """Let the agent of ``context`` answer creating calls and fetches."""
    context.agent.server.serve(Method.CREATE, lambda call: _serve_create(context, call))
    context.agent.server.serve(Method.FETCH, lambda call: _serve_fetch(context, call))


def _serve_create(context: RRefContext, call: ServerCall) -> None:
    """Reply that the reference exists, then make its value. The outcome belongs to the value, not to the call."""
    assert call.message is not None
    rref_id = created_by(call.message.extras[NUMBER])
    request = _Opened(call)
    call.reply(None)
    value = context.created_value(rref_id)
    if value is None:
        return  # nobody refers to it any more
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
        outcome = agent.run_coroutine(result, copy_context())
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
