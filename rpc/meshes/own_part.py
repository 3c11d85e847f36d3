"""Part of a mesh call that a worker runs itself: the function, with its parts of scattered arguments."""

from __future__ import annotations

import logging
from contextvars import copy_context
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from ...core.futures import Future, thread_role
from ..calls.serving import SERVING_CODES, check_future
from ..functions.calling import is_async_execution, open_request
from ..running import call_variable
from ..wire.failures import traceback_text
from .relaying import RelayState
from .scattering import ScatteredPart

if TYPE_CHECKING:
    from ..calls.serving import ServerCall
    from .mesh_call import MeshCall

logger = logging.getLogger("telegrad.rpc")


def run_part(made: MeshCall, request: ServerCall) -> None:
    """Run this worker's part of a call, and give its result to the call.

    Args:
        made: the call.
        request: the first request that brought it.
    """
    call_variable.set(request)
    try:
        result, later = _run(made, request)
        outcome = _outcome(made, request, result, later)
    except BaseException as error:
        if logger.isEnabledFor(logging.INFO):
            text = traceback_text(error).rstrip()
            logger.info("%s, called by worker %r, raised:\n%s", request.what, request.peer.info.name, text)
        made.own_failed(error)
        return
    if outcome is None:
        made.own(result)
    else:
        outcome.add_done_callback(lambda future: _complete(made, future))


SERVING_CODES[run_part.__code__] = "request"


def _run(made: MeshCall, request: ServerCall) -> tuple[Any, bool]:
    """Return what the function returned, and whether that is a future for the result."""
    if made.relay.state is RelayState.ENDED or request.cancelled:
        return None, False  # its caller has given up
    body, parts = made.open()
    function, args, kwargs = open_request(body, made.worker)
    if parts:
        args = tuple(parts[each.number] if type(each) is ScatteredPart else each for each in args)
        kwargs = {name: parts[each.number] if type(each) is ScatteredPart else each for name, each in kwargs.items()}
    request.what = getattr(function, "__qualname__", None) or repr(function)
    role = thread_role
    outer, role.inside = role.inside, False
    try:
        return function(*args, **kwargs), is_async_execution(function)
    finally:
        role.inside = outer


def _outcome(made: MeshCall, request: ServerCall, result: Any, later: bool) -> Future[Any] | None:
    """Return the future of what the function has begun; ``None`` if it has returned its result."""
    if isinstance(result, CoroutineType):
        outcome = made.run_coroutine(result, copy_context())
        request.cancellation().add_done_callback(lambda ended: outcome.cancel() if ended.value() else None)
        return outcome
    return check_future(result) if later else None


def _complete(made: MeshCall, future: Future[Any]) -> None:
    if (error := future.exception()) is not None:
        made.own_failed(error)
    else:
        made.own(future.value())
