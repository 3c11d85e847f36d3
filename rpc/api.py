"""Functions that users call. Each finds its agent by ``current_agent``, and blocks only in ``wait()`` of a future."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..core.futures import Future, in_thread
from .current import current_agent
from .functions.calling import EXACTLY_ONCE_MARK, Later, call_peer
from .group.gathering import collected
from .group.shutdown import shut_down
from .options import UNSET_RPC_TIMEOUT, check_timeout

if TYPE_CHECKING:
    from .agent import Agent
    from .links.worker_info import WorkerInfo
    from .retries.policy import RetryPolicy

T = TypeVar("T")


def shutdown(graceful: bool = True, timeout: float = 0) -> None:
    """End this process's agent.

    Args:
        graceful: wait until every live worker has called ``shutdown`` and no work is left anywhere; otherwise end now.
        timeout: seconds to wait for the others; 0 waits for as long as they live.

    Raises:
        RpcTimeoutError: some workers did not call ``shutdown`` in time; the message names them. The agent is closed.
    """
    shut_down(current_agent(), graceful, timeout)


def shutdown_async(graceful: bool = True, timeout: float = 0) -> Future[None]:
    """Return the future of ``shutdown``, for ``await``.

    Args:
        graceful, timeout: as for ``shutdown``.
    """
    return in_thread(shut_down, current_agent(), graceful, timeout)


@overload
def rpc_async(
    to: str | int | WorkerInfo,
    func: Callable[..., Later[T]],
    args: tuple[Any, ...] | list[Any] | None = ...,
    kwargs: dict[str, Any] | None = ...,
    timeout: float = ...,
    *,
    retry: RetryPolicy | None = ...,
) -> Future[T]: ...


@overload
def rpc_async(
    to: str | int | WorkerInfo,
    func: Callable[..., T],
    args: tuple[Any, ...] | list[Any] | None = ...,
    kwargs: dict[str, Any] | None = ...,
    timeout: float = ...,
    *,
    retry: RetryPolicy | None = ...,
) -> Future[T]: ...


def rpc_async(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: tuple[Any, ...] | list[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
    *,
    retry: RetryPolicy | None = None,
) -> Future[Any]:
    """Run ``func(*args, **kwargs)`` on the worker ``to`` and return a future of its result, at once.

    Arguments are captured before this returns. Received arrays and tensors belong to the receiver alone.

    Args:
        to: name, rank or ``WorkerInfo``; this worker itself is allowed.
        func: a function that the callee can import, a function of the common main script, or a lambda or closure, which
            travels by value. It may be ``async def``, or return a future if ``functions.async_execution`` marks it. One that
            ``rpc.exactly_once`` marks has its effect once, also if workers die; the call waits at the bound of its journal.
        args: positional arguments. A future in them, at any depth, stands for its value, which may not be there yet.
        kwargs: keyword arguments, in which futures stand for their values, too.
        timeout: seconds; the default is the agent's ``rpc_timeout``, 0 is for ever.
        retry: send the call again, within its time-out, when its worker is lost, to the worker that joins in its place. Only
            for functions that ``rpc.idempotent`` marks. The arguments are read again by each attempt: do not change them
            before the future is complete.

    Raises:
        UnknownWorkerError: there is no worker ``to``.
        SerializationError: an argument cannot be sent; the message names it.
        ArgumentValueError: ``retry`` is given, and ``func`` is not marked.

    The future raises what ``func`` raised (the callee's traceback is its cause), ``RpcTimeoutError`` or ``WorkerLostError``.
    """
    agent = current_agent()
    if retry is not None or getattr(func, EXACTLY_ONCE_MARK, False):
        future = _call_surely(agent, to, func, args, kwargs, timeout, retry, "rpc_async")
    else:
        future = call_peer(agent, agent.peers.find(to), func, args, kwargs, timeout, "rpc_async")
    if (futures := collected.get()) is not None:
        futures.append(future)
    return future


@overload
def rpc_sync(
    to: str | int | WorkerInfo,
    func: Callable[..., Later[T]],
    args: tuple[Any, ...] | list[Any] | None = ...,
    kwargs: dict[str, Any] | None = ...,
    timeout: float = ...,
    *,
    retry: RetryPolicy | None = ...,
) -> T: ...


@overload
def rpc_sync(
    to: str | int | WorkerInfo,
    func: Callable[..., T],
    args: tuple[Any, ...] | list[Any] | None = ...,
    kwargs: dict[str, Any] | None = ...,
    timeout: float = ...,
    *,
    retry: RetryPolicy | None = ...,
) -> T: ...


def rpc_sync(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: tuple[Any, ...] | list[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
    *,
    retry: RetryPolicy | None = None,
) -> Any:
    """Run a function on another worker and return its result: ``rpc_async(...).wait()``.

    Args:
        to, func, args, kwargs, timeout, retry: as for ``rpc_async``.
    """
    agent = current_agent()
    if retry is not None or getattr(func, EXACTLY_ONCE_MARK, False):
        return _call_surely(agent, to, func, args, kwargs, timeout, retry, "rpc_sync").wait()
    return call_peer(agent, agent.peers.find(to), func, args, kwargs, timeout, "rpc_sync").wait()


def _call_surely(
    agent: Agent, to: Any, func: Any, args: Any, kwargs: Any, timeout: float, retry: RetryPolicy | None, api: str
) -> Future[Any]:
    """Call a function once, also if workers are lost, or again after a loss. Few programs do: they import it then."""
    if retry is not None:
        from .retries.retrying import call_with_retries

        return call_with_retries(agent, to, func, args, kwargs, timeout, retry, api)
    from .exactly_once.call_journal import call_once

    return call_once(agent, to, func, args, kwargs, timeout, api)


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """Return the worker of that name; without a name, this worker.

    Raises:
        UnknownWorkerError: no worker has that name.
    """
    agent = current_agent()
    return agent.info() if worker_name is None else agent.peers.find(worker_name).info


def get_worker_infos() -> list[WorkerInfo]:
    """Return the workers of the job that have not left and are not lost, this one included, by rank.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     print([worker.name for worker in rpc.get_worker_infos()])
        ['server', 'trainer']
    """
    return sorted(current_agent().peers.live(), key=lambda info: info.id)


def get_rpc_timeout() -> float:
    """Return the seconds that a call without a timeout of its own may take; 0 is for ever."""
    return current_agent().rpc_timeout


def _set_rpc_timeout(seconds: float) -> None:
    """Set the timeout, in seconds, of this worker's calls that are given none; 0 is for ever.

    Raises:
        ValueError: ``seconds`` is negative, or no number.
    """
    current_agent().rpc_timeout = check_timeout("the timeout", seconds)


def debug_info() -> dict[str, Any]:
    """Return the state of this worker: calls under way, references, contexts, peers, threads.

    The dictionary has PyTorch's keys (``agent.num_idle_threads``, ``num_owner_rrefs``, ``num_autograd_contexts``, …), whose
    values are numbers, and others. ``"waiting"`` says in words why each call waits that was made more than half a second ago.
    To know that, this worker asks the callees, which takes a second at most.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     info = rpc.debug_info()
        ...     print(info["worker"], info["agent.thread_pool_size"], info["waiting"])
        trainer 16 []
    """
    agent = current_agent()
    return {**agent.debug_info(), "waiting": agent.waits.explain()}
