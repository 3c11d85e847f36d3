"""``RRef``, a reference to a value that lives on one worker, its owner; and ``remote``, which makes one elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..core.errors import AgentClosedError, RpcError
from ..core.futures import Future, complete_once, copy_error
from ..rpc.extend import (
    UNSET_RPC_TIMEOUT,
    Agent,
    WorkerInfo,
    call_function,
    current_agent,
    label_parts,
    request_body,
    resolve_timeout,
)
from .context import NUMBER, RRefContext
from .forks import Fork, State
from .numbers import Method
from .proxy import Proxy
from .transfers import Transfer


class RRef:
    """Reference to ``value``, which this worker owns (``torch.distributed.rpc.RRef``).

    Send it to other workers in arguments and results, at any depth inside other objects. The owner keeps the value until the
    last reference is gone. ``rpc.remote`` makes references whose owner is another worker.

    A reference can be used in a ``with`` block, which releases it at its end.

    Args:
        value: any object; ``local_value()`` on this worker returns the same object.
        type_hint: accepted for compatibility, and ignored.

    Raises:
        AgentClosedError: this worker's agent is closed.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> def total(reference):
        ...     return sum(reference.to_here())
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     with rpc.RRef([1, 2, 3]) as reference:
        ...         print(reference.owner_name(), rpc.rpc_sync("server", total, (reference,)))
        trainer 6
    """

    __slots__ = ("__weakref__", "_context", "_drop", "_fork", "_released")

    def __init__(self, value: Any, type_hint: Any = None) -> None:
        context = current_agent().part(RRefContext)
        context.agent.state.check_open()
        self._attach(context, context.own(value))

    @classmethod
    def _of(cls, context: RRefContext, fork: Fork) -> RRef:
        reference = cls.__new__(cls)
        reference._attach(context, fork)
        return reference

    def _attach(self, context: RRefContext, fork: Fork) -> None:
        self._context = context
        self._fork = fork
        self._drop = context.dropped.add
        self._released = False

    def __del__(self) -> None:
        # A finalizer runs at any moment, in any thread, under any lock: it only leaves the fork for the I/O loop.
        try:
            if not self._released:
                self._drop(self._fork)
        except AttributeError:
            pass  # the constructor raised

    # -- who and where

    def owner(self) -> WorkerInfo:
        """Return the worker that owns the value."""
        return self._context.agent.peers.at(self._fork.owner.rank).info

    def owner_name(self) -> str:
        """Return the name of the worker that owns the value."""
        return self.owner().name

    def is_owner(self) -> bool:
        """Return whether this worker owns the value."""
        return self._fork.owner == self._context.me

    def confirmed_by_owner(self) -> bool:
        """Return whether the owner has registered this reference: always at the owner, on other workers soon after creation."""
        return self.is_owner() or (self._fork.state is State.CONFIRMED and self._fork.error is None)

    # -- the value

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """Return a copy of the value, fetched from its owner; at the owner, the value itself. Blocks until it exists.

        Args:
            timeout: seconds; the default is the agent's ``rpc_timeout``, 0 is no limit.

        Raises:
            RpcTimeoutError: it took longer than ``timeout``.
            WorkerLostError: the owner is lost, and the value with it.
            RpcError: the reference was released, or its creating call did not arrive.
            Exception: the error of the function that should make the value.
        """
        value = self._fetch(timeout)
        try:
            return value.wait()
        except RpcError:
            self._fork.check()  # the creating call never arrived, and this fetch was faster than that report
            raise
        finally:
            del value  # an error's traceback holds this frame: future -> error -> frame -> future would be a cycle

    def local_value(self) -> Any:
        """Return the value itself, at its owner. Blocks until it exists.

        Raises:
            RpcError: this worker is not the owner, or the reference was released.
            Exception: the error of the function that should make the value.
        """
        self._check()
        if not self.is_owner():
            raise RpcError(
                f"local_value() works at the owner, {self.owner_name()!r}; this is {self._context.agent.name!r}. "
                f"Fetch a copy with to_here(), or run a function there with rref.rpc_sync()"
            )
        return self._own_value().wait()

    def _own_value(self) -> Future[Any]:
        # An error is copied: the owner keeps the original, and raising that would add the frames of each user to its traceback.
        fork = self._fork
        creating = fork.call is not None  # asked first: a fork without a call has its error, if there is one
        value = self._context.value(fork.rref_id, self._context.me)
        if value.done() and value.exception() is None and fork.error is None:
            return value
        result: Future[Any] = Future()
        if creating or fork.error is not None:  # if the call fails, there may never be a value
            fork.settled.add_done_callback(lambda _: _pass_on_error(fork, result))
        value.add_done_callback(lambda done: _copy_outcome(done, result))
        return result

    def _fetch(self, timeout: float = UNSET_RPC_TIMEOUT) -> Future[Any]:
        self._check()
        agent, fork = self._context.agent, self._fork
        seconds = resolve_timeout(agent, timeout)
        if self.is_owner():
            return agent.caller.with_deadline(self._own_value(), seconds, _Fetching(fork, agent))
        what = _Fetching(fork, agent)
        if not fork.created_here and not fork.settled.done():
            return agent.caller.with_deadline(fork.settled, seconds, what, lambda left: self._request_value(left, what))
        return self._request_value(seconds, what)

    def _request_value(self, seconds: float, what: object) -> Future[Any]:
        self._fork.check()
        agent = self._context.agent
        peer = agent.peers.at(self._fork.owner.rank)
        return agent.caller.request(peer, Method.FETCH, tuple(self._fork.rref_id), seconds, what, lambda body: [])

    def _get_future(self) -> Future[Any]:
        """Return the future of the value at its owner; on other workers, the future of its creation."""
        self._check()
        if self.is_owner():
            return self._own_value()
        return self._fork.settled.then(lambda _: self._fork.check())

    def _get_type(self, timeout: float = UNSET_RPC_TIMEOUT, blocking: bool = True) -> Any:
        """Return the type of the value, or a future of it if not ``blocking``."""
        self._check()
        future = self._call(_type_of, (self,), {}, timeout)
        return future.wait() if blocking else future

    # -- running methods of the value where it lives

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> Proxy:
        """Return a proxy: ``rref.rpc_sync().method(...)`` runs the value's method at its owner and returns the result.

        Args:
            timeout: seconds for the call, as in ``rpc.rpc_sync``.
        """
        return Proxy(self, lambda method, args, kwargs: self._call(method, args, kwargs, timeout).wait())

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Proxy:
        """Return a proxy: ``rref.rpc_async().method(...)`` runs the value's method at its owner and returns a future.

        Args:
            timeout: seconds for the call, as in ``rpc.rpc_async``.
        """
        return Proxy(self, lambda method, args, kwargs: self._call(method, args, kwargs, timeout))

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> Proxy:
        """Return a proxy: ``rref.remote().method(...)`` runs the value's method at its owner and returns an ``RRef``.

        Args:
            timeout: seconds within which the method must have returned, as in ``rpc.remote``.
        """
        owner = self._fork.owner.rank
        return Proxy(self, lambda method, args, kwargs: create(self._context, owner, method, args, kwargs, timeout))

    def _call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float
    ) -> Future[Any]:
        return call_function(self._context.agent, self._fork.owner.rank, function, args, kwargs, timeout)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Compute gradients of the value, a scalar tensor that requires grad, from its owner.

        Args:
            dist_autograd_ctx_id: the id of a distributed autograd context, which accumulates the gradients; -1 accumulates
                them in the ``.grad`` of the owner's leaves, as ``Tensor.backward`` does.
            retain_graph: keep the arrays that the graph saved, so that another backward can use it.

        Raises:
            RpcError: the value is not a tensor, or there is no such context.
            AutogradError: the value is not a scalar or does not require grad.
        """
        self._check()
        self._context.backward(self, dist_autograd_ctx_id, retain_graph)

    # -- the end

    def release(self) -> None:
        """Release the reference now, not when it is collected; using it afterwards raises. Repeating this does nothing."""
        if not self._released:
            self._released = True
            self._drop(self._fork)

    def __enter__(self) -> RRef:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def sendable_fork(self, context: RRefContext) -> Fork:
        """Return the fork of this reference, for a message of the agent that ``context`` belongs to.

        Raises:
            AgentClosedError: the reference belongs to another agent.
            RpcError: the reference has no value: it was never created, its owner is lost, ...
        """
        self._check()
        self._fork.check()
        if context is not self._context:
            raise AgentClosedError(
                f"{self} belongs to worker {self._context.agent.name!r} and cannot be sent by worker {context.agent.name!r}"
            )
        return self._fork

    def _check(self) -> None:
        if self._released:
            raise RpcError(f"{self} was released; keep it longer, or create it again")
        agent = self._context.agent
        if agent.closed or agent.state.process_id != os.getpid():
            agent.state.check_open()

    def __reduce__(self) -> Any:
        raise TypeError(
            "an RRef can be sent in rpc arguments and results only; it cannot be pickled or copied otherwise"
        )

    def __repr__(self) -> str:
        return _text(self._fork, self._context.agent)


class _Fetching:
    """Name of a wait for a value, in errors. It holds no reference, and its text is made when it is asked for."""

    __slots__ = ("_agent", "_fork")

    def __init__(self, fork: Fork, agent: Agent) -> None:
        self._fork = fork
        self._agent = agent

    def __str__(self) -> str:
        return f"to_here() of {_text(self._fork, self._agent)}"


def _text(fork: Fork, agent: Agent) -> str:
    kind = "OwnerRRef" if fork.owner.rank == agent.rank else "UserRRef"
    return f"{kind}({fork.rref_id} on {agent.peers.at(fork.owner.rank).info.name!r})"


def _pass_on_error(fork: Fork, target: Future[Any]) -> None:
    if fork.error is not None:
        complete_once(target, error=copy_error(fork.error))


def _copy_outcome(source: Future[Any], target: Future[Any]) -> None:
    error = source.exception()
    complete_once(target, source.value() if error is None else None, error and copy_error(error))


def _type_of(reference: RRef) -> type:
    return type(reference.local_value())


def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: tuple[Any, ...] | list[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef:
    """Run ``func(*args, **kwargs)`` on the worker ``to`` and return an ``RRef`` to its result, at once.

    The worker ``to`` owns the result, and keeps it until every reference to it is gone. If ``func`` raises, the uses of the
    reference raise the same.

    Args:
        to: name, rank or ``WorkerInfo`` of a worker; it may be this one.
        func: as in ``rpc_async``.
        args: positional arguments.
        kwargs: keyword arguments.
        timeout: seconds within which the value must have been made; the default is the agent's ``rpc_timeout``, 0 is no
            limit. After it, uses of the reference raise ``RpcTimeoutError``, while ``func`` may still run.

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
    return create(current_agent().part(RRefContext), to, func, args, kwargs, timeout)


def create(context: RRefContext, to: Any, function: Any, args: Any, kwargs: Any, timeout: float) -> RRef:
    """Run ``remote`` through the agent of ``context``.

    Args:
        context: the references of an agent.
        to: see ``remote``.
        function: see ``remote``.
        args: see ``remote``.
        kwargs: see ``remote``.
        timeout: see ``remote``.
    """
    agent = context.agent
    peer = agent.peers.find(to)
    peer.check_present()
    body, name = request_body(peer, function, args, kwargs)
    transfer = Transfer(context.key(peer.info.id), creates=True)
    what = f"remote({name}) on worker {peer.info.name!r}"
    seconds = resolve_timeout(agent, timeout)
    try:
        answer = agent.caller.request(peer, Method.CREATE, body, seconds, what, label_parts, notes={NUMBER: transfer})
    except BaseException:
        if transfer.created is not None:  # another interceptor refused the message, or Ctrl-C came while it was sent
            context.dropped.add(transfer.created)
        raise
    if transfer.created is None:  # the worker was lost after it was found
        answer.wait()
        raise RpcError(f"{what} was not sent")
    return RRef._of(context, transfer.created)
