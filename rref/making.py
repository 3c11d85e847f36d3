"""Functions that make references: ``remote`` on another worker; and ``value``, which stands for the value of one."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, overload

from ..rpc.extend import UNSET_RPC_TIMEOUT, Later, WorkerInfo, current_agent
from .context import RRefContext
from .proxy import MethodOf, Proxy
from .rref import RRef
from .value_of import ValueOf
from .values import create

if TYPE_CHECKING:
    from ..core.futures import Future

T = typing.TypeVar("T")


@overload
def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., Later[T]],
    args: tuple[Any, ...] | list[Any] | None = ...,
    kwargs: dict[str, Any] | None = ...,
    timeout: float = ...,
) -> RRef[T]: ...


@overload
def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., T],
    args: tuple[Any, ...] | list[Any] | None = ...,
    kwargs: dict[str, Any] | None = ...,
    timeout: float = ...,
) -> RRef[T]: ...


def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: tuple[Any, ...] | list[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef[Any]:
    """Run ``func(*args, **kwargs)`` on the worker ``to`` and return an ``RRef`` to its result, at once.

    The worker ``to`` owns the result, and keeps it until every reference to it is gone. If ``func`` raises, each use of the
    reference raises the same error.

    Args:
        to: name, rank or ``WorkerInfo`` of a worker; it may be this one.
        func: as in ``rpc_async``.
        args: positional arguments.
        kwargs: keyword arguments.
        timeout: seconds within which the value must have been made; the default is the agent's ``rpc_timeout``, 0 is no
            limit. After that, uses of the reference raise ``RpcTimeoutError``, and ``func`` may still run.

    Returns:
        A reference to the result, which may not exist yet.

    Raises:
        UnknownWorkerError: there is no worker ``to``.
        WorkerLostError: the worker is lost.
        SerializationError: an argument cannot be sent; the message names it.
        ValueError: ``timeout`` is negative.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     reference = rpc.remote("server", divmod, (7, 2))
        ...     print(reference.owner_name(), reference.to_here())
        server (3, 1)
    """
    context = current_agent().part(RRefContext)
    return RRef._of(context, create(context, to, func, args, kwargs, timeout))


def value(reference: RRef[T]) -> T:
    """Stand for the value of a reference in the arguments of a call, at any depth: the function gets the value.

    The value may not exist yet. The call waits for it at its callee, without a thread, and fails with its error if there will
    be none. If the callee owns the value, the function gets that object itself, as from ``local_value()``. Else the callee
    fetches a copy from the owner, as ``to_here()`` does, and nothing of it passes through the caller.

    Args:
        reference: the reference.

    Raises:
        TypeError: ``reference`` is no ``RRef``.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        ...     numbers = rpc.remote("b", range, (4,))
        ...     print(rpc.rpc_sync("b", sum, (rpc.value(numbers),)), rpc.rpc_sync("c", max, (rpc.value(numbers),)))
        6 3
    """
    if not isinstance(reference, RRef):
        raise TypeError(
            f"rpc.value takes an RRef, whose value it stands for; you gave {reference!r}: send that as it is"
        )
    return cast("T", ValueOf(reference))


def proxy_of_outcome(future: Future[Any], timeout: float = UNSET_RPC_TIMEOUT) -> Proxy:
    """Return a proxy that calls methods of the result of a call at its callee, and returns references (``Future.remote``).

    Args:
        future: that of the call.
        timeout: seconds, as in ``remote``.
    """
    assert future.call is not None
    context = current_agent().part(RRefContext)
    owner = context.agent.peers.at(future.call[0])

    def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RRef[Any]:
        return RRef._of(
            context, create(context, owner, MethodOf(future, name, "the result of a call"), args, kwargs, timeout)
        )

    return Proxy(call)
