"""``RRef``, a reference to a value that lives on one worker, its owner; and ``remote``, which makes one elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from ..core.errors import AgentClosedError, RpcError
from ..core.futures import Future, complete_once, copy_error
from ..rpc.extend import WorkerInfo, call_function, current_agent, label_parts, request_body, resolve_timeout
from .context import NUMBER, RRefContext
from .forks import Fork, State
from .numbers import Method
from .proxy import Proxy
from .transfers import Transfer

UNSET = -1.0


class RRef:
    """A reference to ``value``, owned by this worker (``torch.distributed.rpc.RRef``).

    Send it to others in arguments and results, as deep inside other objects as you like; the value stays here until the last
    of them is gone. ``rpc.remote`` makes one whose owner is another worker.

    Args:
        value: what it refers to; ``local_value()`` on this worker returns the same object.
        type_hint: accepted for compatibility, and ignored.
    """

    __slots__ = ("__weakref__", "_call_soon", "_context", "_drop", "_fork", "_released")

    def __init__(self, value: Any, type_hint: Any = None) -> None:
        context = current_agent().part(RRefContext)
        context.agent.check_open()
        self._attach(context, context.own(value))

    @classmethod
    def _of(cls, context: RRefContext, fork: Fork) -> RRef:
        reference = cls.__new__(cls)
        reference._attach(context, fork)
        return reference

    def _attach(self, context: RRefContext, fork: Fork) -> None:
        self._context = context
        self._fork = fork
        self._call_soon = context.agent.timers.call_soon
        self._drop = partial(context.drop, fork)  # made here: a finalizer may do nothing that can fail
        self._released = False

    def __del__(self) -> None:
        # A finalizer runs at any moment, in any thread, under any lock: it only leaves an action for the I/O loop.
        try:
            if not self._released:
                self._call_soon(self._drop)
        except AttributeError:
            pass  # the constructor raised

    # -- who and where

    def owner(self) -> WorkerInfo:
        """The worker where the value lives."""
        return self._context.agent.peers.at(self._fork.owner.rank).info

    def owner_name(self) -> str:
        """Its name."""
        return self.owner().name

    def is_owner(self) -> bool:
        """Whether the value lives on this worker."""
        return self._fork.owner == self._context.me

    def confirmed_by_owner(self) -> bool:
        """Whether the owner knows of this reference: true at the owner; a user hears of it soon after creation."""
        return self.is_owner() or (self._fork.state is State.CONFIRMED and self._fork.error is None)

    # -- the value

    def to_here(self, timeout: float = UNSET) -> Any:
        """A copy of the value, fetched from its owner; the value itself at the owner. Blocks until it exists.

        Args:
            timeout: seconds; the default is the agent's ``rpc_timeout``, 0 is for ever.

        Raises:
            RpcTimeoutError: it took longer.
            WorkerLostError: the owner is lost, and the value with it.

        If the call that should make the value raised, so does this.
        """
        value = self._fetch(timeout)
        try:
            return value.wait()
        except RpcError:
            self._fork.check()  # the creating call never arrived, and this fetch was faster than the news of that
            raise
        finally:
            del value  # an error's traceback holds this frame: future -> error -> frame -> future would be a cycle

    def local_value(self) -> Any:
        """The value itself, at its owner. Blocks until it exists.

        Raises:
            RpcError: this worker is not the owner.
        """
        self._check()
        if not self.is_owner():
            raise RpcError(
                f"local_value() works at the owner, {self.owner_name()!r}; this is {self._context.agent.name!r}. "
                f"Fetch a copy with to_here(), or run a function there with rref.rpc_sync()"
            )
        return self._own_value().wait()

    def _own_value(self) -> Future[Any]:
        """The future of the value at its owner. An error is a copy: the owner keeps the original, which must not get hold of
        the frames of those who ask, and of their references."""
        value = self._context.value(self._fork.rref_id, self._context.me)
        if value.done() and value.exception() is None:
            return value
        result: Future[Any] = Future()
        value.add_done_callback(lambda done: _complete_like(done, result))
        return result

    def _fetch(self, timeout: float = UNSET) -> Future[Any]:
        self._check()
        agent, fork = self._context.agent, self._fork
        seconds = resolve_timeout(agent, timeout)
        if self.is_owner():
            return agent.caller.with_deadline(self._own_value(), seconds, f"{self}.to_here()")
        what = f"to_here() of {self} at worker {self.owner_name()!r}"
        if not fork.created_here and not fork.settled.done():
            return agent.caller.with_deadline(fork.settled, seconds, what, lambda left: self._request_value(left, what))
        return self._request_value(seconds, what)

    def _request_value(self, seconds: float, what: str) -> Future[Any]:
        self._fork.check()
        agent = self._context.agent
        peer = agent.peers.at(self._fork.owner.rank)
        return agent.caller.request(peer, Method.FETCH, tuple(self._fork.rref_id), seconds, what, lambda body: [])

    def _get_future(self) -> Future[Any]:
        """The future of the value at its owner; elsewhere the future of its creation."""
        self._check()
        if self.is_owner():
            return self._own_value()
        return self._fork.settled.then(lambda _: self._fork.check())

    def _get_type(self, timeout: float = UNSET, blocking: bool = True) -> Any:
        """The type of the value, or a future of it if not ``blocking``."""
        self._check()
        future = self._call(_type_of, (self,), {}, timeout)
        return future.wait() if blocking else future

    # -- running methods of the value where it lives

    def rpc_sync(self, timeout: float = UNSET) -> Proxy:
        """``rref.rpc_sync().method(...)`` runs the value's method at its owner and returns the result."""
        return Proxy(self, lambda method, args, kwargs: self._call(method, args, kwargs, timeout).wait())

    def rpc_async(self, timeout: float = UNSET) -> Proxy:
        """``rref.rpc_async().method(...)`` runs the value's method at its owner and returns a future of the result."""
        return Proxy(self, lambda method, args, kwargs: self._call(method, args, kwargs, timeout))

    def remote(self, timeout: float = UNSET) -> Proxy:
        """``rref.remote().method(...)`` runs the value's method at its owner and returns an ``RRef`` to the result."""
        owner = self._fork.owner.rank
        return Proxy(self, lambda method, args, kwargs: create(self._context, owner, method, args, kwargs, timeout))

    def _call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float
    ) -> Future[Any]:
        """Run ``function`` at the owner."""
        return call_function(self._context.agent, self._fork.owner.rank, function, args, kwargs, timeout)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Differentiate from the value, a scalar tensor: in a distributed autograd context, or locally at the owner."""
        self._check()
        self._context.backward(self, dist_autograd_ctx_id, retain_graph)

    # -- the end

    def release(self) -> None:
        """Give the reference up now, not when it is collected; using it afterwards raises. Again does nothing."""
        if not self._released:
            self._released = True
            self._call_soon(self._drop)

    def __enter__(self) -> RRef:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def sendable_fork(self, context: RRefContext) -> Fork:
        """The fork that this is, for a message of the agent that ``context`` belongs to.

        Raises:
            AgentClosedError: it belongs to another agent.
            RpcError: it was never created, its owner is lost, ...
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
        if agent.closed or agent.process_id != os.getpid():
            agent.check_open()

    def __reduce__(self) -> Any:
        raise TypeError(
            "an RRef can be sent in rpc arguments and results only; it cannot be pickled or copied otherwise"
        )

    def __repr__(self) -> str:
        kind = "OwnerRRef" if self.is_owner() else "UserRRef"
        return f"{kind}({self._fork.rref_id} on {self.owner_name()!r})"


def _complete_like(source: Future[Any], target: Future[Any]) -> None:
    error = source.exception()
    complete_once(target, source.value() if error is None else None, error and copy_error(error))


def _type_of(reference: RRef) -> type:
    return type(reference.local_value())


def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: tuple[Any, ...] | list[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = -1.0,
) -> RRef:
    """Run ``func(*args, **kwargs)`` on the worker ``to`` and return an ``RRef`` to its result, at once.

    What ``func`` raises is raised by ``to_here()``. The value lives on ``to`` until every reference to it is gone.

    Args:
        to: name, rank or ``WorkerInfo``; this worker itself is allowed.
        func: as in ``rpc_async``.
        args: positional arguments.
        kwargs: keyword arguments.
        timeout: seconds within which the owner must have taken the call on; 0 is for ever.

    Raises:
        UnknownWorkerError: there is no worker ``to``.
        SerializationError: an argument cannot be sent; the message names it.
    """
    return create(current_agent().part(RRefContext), to, func, args, kwargs, timeout)


def create(context: RRefContext, to: Any, function: Any, args: Any, kwargs: Any, timeout: float) -> RRef:
    """``remote`` through a given agent."""
    agent = context.agent
    peer = agent.peers.find(to)
    peer.check_present()
    body, name = request_body(peer, function, args, kwargs)
    transfer = Transfer(context.key(peer.info.id), creates=True)
    what = f"remote({name}) on worker {peer.info.name!r}"
    seconds = resolve_timeout(agent, timeout)
    answer = agent.caller.request(peer, Method.CREATE, body, seconds, what, label_parts, notes={NUMBER: transfer})
    fork = transfer.created
    if fork is None:  # the worker was lost this instant
        answer.wait()
        raise RpcError(f"{what} was not sent")
    answer.add_done_callback(lambda future: context.creation_answered(fork, future.exception()))
    return RRef._of(context, fork)
