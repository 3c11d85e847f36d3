"""Calls of user functions: the request of the caller and the answer of the callee."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ...base.errors import ArgumentTypeError
from ...base.worker_reports import last_events
from ...core.extend import operation_name, profiles, record_call
from ...core.futures import Future, thread_role
from ..options import UNSET_RPC_TIMEOUT, check_timeout
from ..wire.function_names import reference, resolve
from ..wire.messages import Method

if TYPE_CHECKING:
    from ...base.last_events import LastCalls
    from ..agent import Agent
    from ..calls.server_call import ServerCall
    from ..links.peer import Peer

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Later: TypeAlias = Coroutine[Any, Any, T] | Future[T]  # the callee returns this, and the caller gets its result
ASYNC_MARK = "_telegrad_async_execution"
EXACTLY_ONCE_MARK = "_telegrad_exactly_once"


def async_execution(function: F) -> F:
    """Mark a function that returns a ``Future``: the caller gets the future's value when it is complete.

    No thread of the callee waits for it. Put this decorator above ``@staticmethod`` or ``@classmethod``.
    """
    target = getattr(function, "__func__", function)
    if not callable(target):
        raise TypeError(f"async_execution marks a function; you gave {function!r}")
    setattr(target, ASYNC_MARK, True)
    return function


def is_async_execution(function: Any) -> bool:
    """Return whether ``async_execution`` marked it."""
    return bool(getattr(function, ASYNC_MARK, False))


def call_function(
    agent: Agent, to: Any, function: Any, args: Any, kwargs: Any, timeout: float, api: str = "rpc_async"
) -> Future[Any]:
    """Ask the worker ``to`` to run a function; the future holds its result.

    Args:
        agent: the agent that calls.
        to: name, rank or ``WorkerInfo`` of the callee.
        function: the function to run.
        args: its positional arguments; ``None`` for none.
        kwargs: its keyword arguments; ``None`` for none.
        timeout: seconds; 0 for none.
        api: the function that the user called, for profiles.
    """
    return call_peer(agent, agent.peers.find(to), function, args, kwargs, timeout, api)


def call_peer(agent: Agent, peer: Peer, function: Any, args: Any, kwargs: Any, timeout: float, api: str) -> Future[Any]:
    """Do what ``call_function`` does, for a worker that is found already.

    Args:
        agent, peer, function, args, kwargs, timeout, api: as for ``call_function``.
    """
    body, name = request_body(peer, function, args, kwargs)
    what = text_of(name, peer.info.name)
    seconds = agent.rpc_timeout if timeout == UNSET_RPC_TIMEOUT else check_timeout("timeout", timeout)
    if not profiles.get():
        return agent.caller.begin(peer, Method.CALL, body, seconds, what, label_parts).future
    request = partial(agent.caller.request, peer, Method.CALL, body, seconds, what, label_parts)
    return record_call(event_name(api, function, agent, peer), request, blocking=api == "rpc_sync")


@lru_cache(maxsize=1024)
def text_of(name: str, worker: str) -> str:
    """Return what error messages say of a call.

    Args:
        name: of the function.
        worker: name of the callee.
    """
    return f"the call of {name} on worker {worker!r}"


def request_body(
    peer: Peer, function: Any, args: Any, kwargs: Any, once: bool = False
) -> tuple[tuple[Any, Any, Any], str]:
    """Return the body of a request to run a function, and the function's name for people.

    The body has the function, by its name where possible, and its arguments.

    Args:
        peer: the callee.
        function: the function to run.
        args: its positional arguments.
        kwargs: its keyword arguments.
        once: the call is an exactly-once call.

    Raises:
        TypeError: ``function`` cannot be called in this way, or the arguments are no tuple and dict.
    """
    if not callable(function):
        raise TypeError(f"func must be something to call; you gave {function!r}")
    if args is not None and not isinstance(args, (tuple, list)):
        raise TypeError(f"args must be a tuple; you gave {args!r}. For one argument write args=(x,)")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError(f"kwargs must be a dict; you gave {kwargs!r}")
    if kwargs and not all(isinstance(name, str) for name in kwargs):
        raise TypeError(f"kwargs must have names of parameters, which are strings; you gave {list(kwargs)!r}")
    if getattr(function, EXACTLY_ONCE_MARK, False) and not once:
        raise ArgumentTypeError(
            f"{name_of(function)} is marked with @rpc.exactly_once; call it with rpc_async or rpc_sync, and without retry="
        )
    name, named = name_of(function), reference(function, peer.same_main)
    given = args if type(args) is tuple else tuple(args or ())
    return (function if named is None else named, given, kwargs or {}), name


def name_of(function: Any) -> str:
    """Return a function's name for people; its type's if it has none."""
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def event_name(api: str, function: Any, agent: Agent, peer: Peer) -> str:
    """Return the name of a call in profiles, as PyTorch's: ``rpc_sync#f(worker0 -> worker1)``; ``aten::add`` for an operation.

    Args:
        api: the function that the user called.
        function: what runs at the callee.
        agent: the caller.
        peer: the callee.
    """
    name = getattr(function, "profiled_as", None) or operation_name(function) or name_of(function)
    return f"{api}#{name}({agent.name} -> {peer.info.name})"


def label_parts(body: tuple[Any, Any, Any]) -> list[tuple[str, Any]]:
    """Return the parts of a request and their names in error messages."""
    function, args, kwargs = body
    parts = [] if isinstance(function, str) else [(f"the function {name_of(function)!r}", function)]
    parts += [(f"argument {index}", value) for index, value in enumerate(args)]
    return parts + [(f"argument {name}=", value) for name, value in kwargs.items()]


def resolve_timeout(agent: Agent, timeout: float) -> float:
    """Return the time-out of one call in seconds: its own, or the agent's.

    Raises:
        ValueError: it is negative, or no number.
    """
    if timeout == UNSET_RPC_TIMEOUT:
        return agent.rpc_timeout
    return check_timeout("timeout", timeout)


def open_request(body: tuple[Any, Any, Any], worker: str) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Return the function and arguments of a request that arrived.

    Args:
        body: of the request.
        worker: name of this worker, for errors.
    """
    function, args, kwargs = body
    return resolve(function, worker) if isinstance(function, str) else function, args, kwargs


def serve_call(worker: str, noted: LastCalls | None, call: ServerCall) -> None:
    """Answer ``Method.CALL``.

    Args:
        worker: name of this worker.
        noted: takes the call, for the launcher; None if it does not.
        call: the request.
    """
    function, args, kwargs = call.open()
    name = function
    if isinstance(function, str):
        function = resolve(function, worker)
    call.what = getattr(function, "__qualname__", None) or repr(function)
    role = thread_role
    outer, role.inside = role.inside, False
    if noted is not None:
        noted.begin(call.what, *call.key)
    try:
        result = (
            call.kept(partial(resolve, name, worker), function, args, kwargs)
            if call.kept
            else function(*args, **kwargs)
        )
    finally:
        role.inside = outer
        if noted is not None:
            noted.end(*call.key)
    del args, kwargs
    call.reply_with(result, bool(getattr(function, ASYNC_MARK, False)))


def serve_calls(agent: Agent) -> None:
    """Let an agent answer calls."""
    noted = last_events()
    agent.server.serve(Method.CALL, partial(serve_call, agent.name, noted.calls if noted is not None else None))
