"""Part of a mesh call that a worker runs itself: the function, with its parts of scattered arguments."""

from __future__ import annotations

import logging
from contextvars import copy_context
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol

from ...core.futures import Future, thread_role
from ..calls.server_call import SERVING_CODES, check_future
from ..functions.calling import ASYNC_MARK
from ..running import call_variable
from ..wire.failures import traceback_text
from ..wire.function_names import resolve
from .scattering import ScatteredPart

if TYPE_CHECKING:
    from ...base.last_events import LastCalls
    from ..agent import Agent
    from ..calls.server_call import ServerCall

logger = logging.getLogger("telegrad.rpc")


class PartCall(Protocol):
    """Mesh call at a worker that has a part of it (``MeshCall``, ``LeafCall``)."""

    @property
    def agent(self) -> Agent:
        """The agent."""
        ...

    def open(self) -> tuple[Any, list[Any]] | None:
        """Return the call, unpickled, and this worker's parts of scattered arguments; ``None`` if the call is over."""
        ...

    def own(self, value: Any) -> None:
        """Take the result of this worker's part. In the thread and context of the code that made it."""
        ...

    def own_failed(self, error: BaseException) -> None:
        """Take an exception as the result of this worker's part, likewise."""
        ...


def run_part(made: PartCall, request: ServerCall, noted: LastCalls | None) -> None:
    """Run this worker's part of a call, and give its result to the call.

    Args:
        made: the call.
        request: the first request that brought it.
        noted: takes the part, for the launcher; ``None`` if it does not.
    """
    call_variable.set(request)
    try:
        result, later = _run(made, request, noted)
        outcome = _outcome(made, request, result) if later or type(result) is CoroutineType else None
    except BaseException as error:
        if logger.isEnabledFor(logging.INFO):
            text = traceback_text(error).rstrip()
            logger.info("%s, called by worker %r, raised:\n%s", request.what, request.peer.info.name, text)
        made.own_failed(error)
        return
    if outcome is None:
        made.own(result)
    else:
        request.park()
        context = copy_context()
        outcome.add_done_callback(lambda future: context.run(_complete, made, future))


SERVING_CODES[run_part.__code__] = "request"


def _run(made: PartCall, request: ServerCall, noted: LastCalls | None) -> tuple[Any, bool]:
    """Return what the function returned, and whether that is a future for the result."""
    opened = None if request.cancelled else made.open()
    if opened is None:
        return None, False  # its caller has given up
    (function, args, kwargs), parts = opened
    if isinstance(function, str):
        function = resolve(function, made.agent.name)
    if parts:
        args = tuple(parts[each.number] if type(each) is ScatteredPart else each for each in args)
        kwargs = {name: parts[each.number] if type(each) is ScatteredPart else each for name, each in kwargs.items()}
    request.what = getattr(function, "__qualname__", None) or repr(function)
    role = thread_role
    outer, role.inside = role.inside, False
    if noted is not None:
        noted.begin(request.what, *request.key)
    try:
        return function(*args, **kwargs), getattr(function, ASYNC_MARK, False)
    finally:
        role.inside = outer
        if noted is not None:
            noted.end(*request.key)


def _outcome(made: PartCall, request: ServerCall, result: Any) -> Future[Any]:
    """Return the future of what the function has begun."""
    if isinstance(result, CoroutineType):
        outcome = made.agent.threads.run_coroutine(result, copy_context())
        request.cancellation().add_done_callback(lambda ended: outcome.cancel() if ended.value() else None)
        return outcome
    return check_future(result)


def _complete(made: PartCall, future: Future[Any]) -> None:
    if (error := future.exception()) is not None:
        made.own_failed(error)
    else:
        made.own(future.value())
