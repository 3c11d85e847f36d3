"""``RRef``, a reference to a value on one worker, its owner."""

from __future__ import annotations

import typing
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic

from ..base.errors import AgentClosedError, RpcError, RpcTimeoutError, SerializationError
from ..core.futures import Future, in_thread
from ..rpc.extend import (
    STREAM_AHEAD,
    UNSET_RPC_TIMEOUT,
    Peer,
    WorkerInfo,
    call_function,
    current_agent,
    may_block,
    resolve_timeout,
)
from .context import RRefContext
from .forks import Fork, State
from .methods import call_method
from .proxy import MethodOf, Proxy, refuse_attribute
from .value_of import ValueOf
from .values import Fetching, create, fetch, own_value, text_of, type_of_value, wait_for_value

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ..rpc.extend import Stream

    T = TypeVar("T", default=Any)  # a plain RRef is a reference to any value
else:
    T = typing.TypeVar("T")


class RRef(Generic[T]):
    """Reference to ``value``, which this worker owns (``torch.distributed.rpc.RRef``).

    It can be sent to other workers in arguments and results, at any depth inside other objects. The owner keeps the value
    until the last reference is gone. ``rpc.remote`` makes references whose owner is another worker.

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

    __slots__ = ("__weakref__", "_context", "_drop", "_fork", "_profiling", "_released", "_type")

    def __init__(self, value: T, type_hint: Any = None) -> None:
        context = current_agent().part(RRefContext)
        context.agent.state.check_open()
        self._attach(context, context.own(value))

    @classmethod
    def _of(cls, context: RRefContext, fork: Fork) -> RRef[Any]:
        reference = cls.__new__(cls)
        reference._attach(context, fork)
        return reference

    def _attach(self, context: RRefContext, fork: Fork) -> None:
        self._context = context
        self._fork = fork
        self._type: type | None = None  # type of the value, once it is known
        self._profiling: Future[Any] | None = None
        self._drop = context.dropped.add
        self._released = False

    def __del__(self) -> None:
        # A finalizer runs at any moment, in any thread, under any lock. So it only queues the fork for the I/O loop.
        try:
            if not self._released:
                self._drop(self._fork)
        except AttributeError:
            pass  # the constructor raised

    # -- the owner

    def owner(self) -> WorkerInfo:
        """Return the worker that owns the value."""
        return self._context.agent.peers.at(self._fork.owner.number).info

    def owner_name(self) -> str:
        """Return the name of the worker that owns the value."""
        return self.owner().name

    def is_owner(self) -> bool:
        """Return whether this worker owns the value."""
        return self._fork.owner == self._context.me

    def confirmed_by_owner(self) -> bool:
        """Return whether the owner has registered this reference: always true at the owner, elsewhere soon after creation.

        If another user gave the reference, the owner's answer is on its way, and this waits for it, up to the agent's
        ``rpc_timeout``. So a function finds all references among its arguments confirmed. A coroutine does not wait.
        """
        if self.is_owner():
            return True
        if self._fork.awaits_owner and may_block():
            self._await_owner()
        return self._fork.state is State.CONFIRMED and self._fork.error is None

    def _await_owner(self) -> None:
        agent = self._context.agent
        answer = agent.caller.waits.with_deadline(
            self._fork.settled, agent.rpc_timeout, f"the owner's answer about {self}"
        )
        with suppress(RpcTimeoutError):
            answer.wait()

    # -- the value

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> T:
        """Return a copy of the value, fetched from its owner; at the owner, the value itself. Blocks until it exists.

        Args:
            timeout: seconds; the default is the agent's ``rpc_timeout``, 0 is no limit.

        Raises:
            RpcTimeoutError: it took longer than ``timeout``.
            WorkerLostError: the owner is lost, and the value with it.
            RpcError: the reference was released, or its creating call did not arrive.
            Exception: the error of the function that makes the value.
        """
        value = self._fetch(timeout)
        try:
            return value.wait()
        except RpcError:
            self._fork.check()  # if the creating call did not arrive, its error says more
            raise
        finally:
            del value  # an error's traceback holds this frame: future -> error -> frame -> future would be a cycle

    def to_here_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Future[T]:
        """Return a future of the result of ``to_here``, to await or to chain.

        Args:
            timeout: as for ``to_here``.
        """
        fetched = self._fetch(timeout)
        if not fetched.done():
            fetched.add_done_callback(
                lambda _: self
            )  # keeps the reference until then: the owner must not free the value
        return fetched

    def _fetch(self, timeout: float) -> Future[T]:
        self._check()
        return fetch(self._context, self._fork, resolve_timeout(self._context.agent, timeout))

    def local_value(self) -> T:
        """Return the value itself, at its owner. Blocks until it exists, up to the agent's ``rpc_timeout``.

        Raises:
            RpcError: this worker is not the owner, or the reference was released.
            RpcTimeoutError: the value was not made in time.
            Exception: the error of the function that makes the value.
        """
        self._check()
        if not self.is_owner():
            raise RpcError(
                f"local_value() works at the owner, {self.owner_name()!r}; this is {self._context.agent.name!r}. "
                f"Fetch a copy with to_here(), or run a function there with rref.rpc_sync()"
            )
        value = own_value(self._context, self._fork)
        here: T = wait_for_value(self._context, value, Fetching(self._fork, self._context.agent))
        return here

    def value_here(self, to: int) -> Future[Any] | None:
        """Return the future of a value that is made, and here; ``None`` for others, or if ``to`` is this worker's number."""
        mine = self.is_owner() and to != self._context.me.number
        if not mine or self._released or self._fork.error is not None:
            return None
        owned = self._context.ownership.owned.get(self._fork.rref_id)
        return owned.value if owned is not None and owned.made else None

    def _get_future(self) -> Future[Any]:
        """Return the future of the value at its owner; on other workers, the future of its creation."""
        self._check()
        if self.is_owner():
            return own_value(self._context, self._fork)
        fork = self._fork  # not ``self``: the traceback of the fork's error must not keep this reference
        return fork.settled.then(lambda _: fork.check())

    def _get_profiling_future(self) -> Future[Any]:
        """Return the future that completes when the creation of the value has ended, and so has been profiled."""
        return self._profiling or self._get_future()

    def _set_profiling_future(self, future: Future[Any]) -> None:
        self._profiling = future

    def _get_type(self, timeout: float = UNSET_RPC_TIMEOUT, blocking: bool = True) -> Any:
        """Return the type of the value, or a future of it if not ``blocking``. The owner is asked only once.

        Args:
            timeout: seconds; the default is the agent's ``rpc_timeout``, 0 is no limit.
            blocking: wait for the type, and return it.
        """
        self._check()
        future = self._ask_type(timeout)
        try:
            return self._keep_type(future) if blocking else future.then(self._keep_type)
        finally:
            del future  # as in to_here()

    def _ask_type(self, timeout: float) -> Future[type]:
        if self.is_owner():
            return self.to_here_async(timeout).then(type_of_value)
        if self._type is None:
            return self._call(_type_at_owner, (self,), {}, timeout)
        known: Future[type] = Future()
        known.set_result(self._type)
        return known

    def _keep_type(self, answer: Future[type]) -> type:
        try:
            self._type = kind = answer.wait()
            return kind
        finally:
            del answer

    # -- running methods of the value at its owner

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> Proxy:
        """Return a proxy: ``rref.rpc_sync().method(...)`` runs the value's method at its owner and returns the result.

        Args:
            timeout: seconds for the call, as in ``rpc.rpc_sync``.
        """
        return Proxy(lambda name, args, kwargs: self._call_method(name, args, kwargs, timeout, "rpc_sync").wait())

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Proxy:
        """Return a proxy: ``rref.rpc_async().method(...)`` runs the value's method at its owner and returns a future.

        Args:
            timeout: seconds for the call, as in ``rpc.rpc_async``.
        """
        return Proxy(lambda name, args, kwargs: self._call_method(name, args, kwargs, timeout, "rpc_async"))

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> Proxy:
        """Return a proxy: ``rref.remote().method(...)`` runs the value's method at its owner and returns an ``RRef``.

        The value may not exist yet, and nothing is asked of it: the call waits for it at the owner. So calls can be chained,
        as in ``rref.remote().f().remote().g()``, and are all sent at once. If the value has no such method, a use of the
        result raises ``AttributeError``.

        Args:
            timeout: seconds within which the method must have returned, as in ``rpc.remote``.
        """
        return Proxy(lambda name, args, kwargs: self._remote(self._method(name), args, kwargs, timeout))

    def stream(self, timeout: float = UNSET_RPC_TIMEOUT, *, ahead: int = STREAM_AHEAD) -> Proxy:
        """Return a proxy: ``for item in rref.stream().method(...)`` runs a generator of the value at its owner.

        Args:
            timeout: seconds that a consumer waits for each item, as in ``rpc.stream``.
            ahead: how many items may be made before they are taken, as in ``rpc.stream``.
        """
        return Proxy(lambda name, args, kwargs: self._stream(self._method(name), args, kwargs, timeout, ahead))

    def _method(self, name: str) -> MethodOf:
        return MethodOf(ValueOf(self), name, str(self))

    def _stream(self, method: Any, args: Any, kwargs: Any, timeout: float, ahead: int) -> Stream[Any]:
        from ..rpc.extend import open_stream  # here: few programs stream

        agent = self._context.agent
        return open_stream(agent, agent.peers.at(self._fork.owner.number), method, args, kwargs, timeout, ahead)

    def _remote(self, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float) -> RRef[Any]:
        self._check()
        owner = self._context.agent.peers.at(self._fork.owner.number)
        return RRef._of(self._context, create(self._context, owner, method, args, kwargs, timeout))

    def _call_method(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float, api: str
    ) -> Future[Any]:
        if self.is_owner():
            return self._call(self._method(name), args, kwargs, timeout, api)
        self._check()
        self._fork.check()
        return call_method(self._context, self._fork, name, args, kwargs, timeout, api)

    def _call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: float,
        api: str = "rpc_async",
    ) -> Future[Any]:
        agent = self._context.agent
        return call_function(agent, agent.peers.at(self._fork.owner.number), function, args, kwargs, timeout, api)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Compute gradients of the value, which is a scalar tensor that requires grad. The backward pass begins at the owner.

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

    def backward_async(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> Future[None]:
        """Return the future of ``backward``, for ``await``.

        Args:
            dist_autograd_ctx_id, retain_graph: as for ``backward``.
        """
        return in_thread(self.backward, dist_autograd_ctx_id, retain_graph)

    # -- the end

    def release(self) -> None:
        """Release the reference now, before it is collected. Later uses raise an error. Releasing it again does nothing."""
        if not self._released:
            self._released = True
            self._drop(self._fork)

    def __enter__(self) -> RRef[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def sendable_fork(self, context: RRefContext) -> Fork:
        """Return the fork of this reference, for a message of the agent to which ``context`` belongs.

        Raises:
            AgentClosedError: the reference belongs to another agent.
            RpcError: the reference has no value, for example because its owner is lost.
        """
        self._check()
        self._fork.check()
        if context is not self._context:
            raise AgentClosedError(
                f"{self} belongs to worker {self._context.agent.name!r} and cannot be sent by worker {context.agent.name!r}"
            )
        return self._fork

    def _identity(self) -> tuple[Any, ...]:
        """Return what is equal for all references of this worker to the same value."""
        return self._fork.rref_id, self._context.agent.record.identity

    def _check(self) -> None:
        if self._released:
            raise RpcError(f"{self} was released; keep it longer, or create it again")
        if (state := self._context.agent.state).closed:
            state.check_open()  # raises

    def __reduce__(self) -> Any:
        raise SerializationError(
            "an RRef can be sent in rpc arguments and results only; it cannot be pickled or copied otherwise"
        )

    def __repr__(self) -> str:
        return text_of(self._fork, self._context.agent)

    if not TYPE_CHECKING:  # else a type checker would accept every attribute
        __getattr__ = refuse_attribute


def _type_at_owner(reference: RRef[Any]) -> type:
    return type(reference.local_value())


def owner_of(reference: RRef[Any]) -> Peer:
    """Return the worker that owns the value of a reference: that incarnation, though another may have its name and rank now."""
    return reference._context.agent.peers.at(reference._fork.owner.number)


def is_released(reference: RRef[Any]) -> bool:
    """Return whether a reference was released by ``release()``."""
    return reference._released


def call_of_proxy(proxy: Proxy) -> tuple[RRef[Any], float, bool] | None:
    """Return the reference whose ``rpc_sync()`` or ``rpc_async()`` made a proxy, the timeout, and whether it returns futures.

    Args:
        proxy: calls methods of the value; for other proxies ``None`` is returned.
    """
    call: Any = proxy._call
    is_future = call.__code__ in RRef.rpc_async.__code__.co_consts
    if not is_future and call.__code__ not in RRef.rpc_sync.__code__.co_consts:
        return None
    variables = dict(zip(call.__code__.co_freevars, call.__closure__))
    return variables["self"].cell_contents, variables["timeout"].cell_contents, is_future
