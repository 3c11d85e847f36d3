"""``rpc.stream``: the items of a generator that runs on another worker, as they come.

The caller asks for each item with a request of its own, and a few requests are under way ahead of the consumer. There is no
other backpressure: the callee makes an item only when there is a request for it.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...core.extend import profiles, record_call
from ...core.futures import Future
from ..current import current_agent
from ..options import STREAM_AHEAD, UNSET_RPC_TIMEOUT
from ..wire.control import encode_ids
from ..wire.messages import Method, Topic
from ..wire.payload import no_labels
from .calling import event_name, label_parts, request_body, resolve_timeout

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.dispatch import PendingCall
    from ..links.peer import Peer
    from ..links.worker_info import WorkerInfo
    from ..wire.payload import Labels

FIRST_AHEAD = 64  # items that are asked for at first, at most; then as many as were taken
T = TypeVar("T")


class Pulls:
    """Requests for the items of one stream, a few of which are under way.

    Args:
        agent: the agent that sends the requests.
        peer: the worker on which the generator runs.
        body: the function and its arguments.
        ahead: how many items may be under way, or here and not taken.
        timeout: seconds that a consumer waits for an item; 0 for no limit.
        what: names the stream in errors.
        event: name of the requests in profiles.
    """

    def __init__(self, agent: Agent, peer: Peer, body: Any, ahead: int, timeout: float, what: str, event: str) -> None:
        self.what = what
        self._event = event
        self.over = False
        self._agent = agent
        self._peer = peer
        self._ahead = ahead
        self._timeout = timeout
        # Without a deadline: the timeout begins when a consumer waits.
        self._opening = self._request(Method.STREAM, body, 0, label_parts)
        self._calls: deque[PendingCall] = deque([self._opening])
        self._number = 1  # of the next item to ask for

    def first(self) -> Future[Any]:
        """Return a future of the next answer, ``(whether it is an item, value)``; its deadline begins now."""
        if self.over:
            ended: Future[Any] = Future()
            ended.set_result((False, None))
            return ended
        self._ask_for(1)
        call = self._calls[0]
        if self._timeout:
            self._agent.caller.table.expire_in(call, self._timeout)
        return call.future

    def took(self, more: bool) -> None:
        """Note that a consumer took the first answer, and ask for more items if there may be some."""
        if self.over:
            return
        self._calls.popleft()
        if more:
            taken = self._number - len(self._calls)
            self._ask_for(min(self._ahead, max(taken, FIRST_AHEAD)))
        else:
            self.over = True
            self._calls.clear()  # they are answered in the same way

    def close(self) -> None:
        """Close the generator on its worker, and drop the items that come. Closing again does nothing. Any thread."""
        if self.over:
            return
        self.over = True
        # A consumer may wait for the first call, so it is cancelled; the callee answers the others. If the first call is the
        # opening request, its cancellation closes the generator, unless its answer comes at this moment.
        cancelled = [call for call in list(self._calls)[:1] if call.future.cancel()]
        if self._opening not in cancelled and not (self._peer.gone or self._agent.closed):
            self._agent.control.post(self._peer, Topic.CANCEL, encode_ids([self._opening.call_id]))

    def _ask_for(self, count: int) -> None:
        """Ask for more items, so that ``count`` are under way or here."""
        # Not before the first answer: a later request could overtake the one that opens the stream.
        if not self._opening.future.done():
            return
        while len(self._calls) < count:
            body = (self._opening.call_id, self._number)
            self._calls.append(self._request(Method.PULL, body, self._number))
            self._number += 1

    def _request(self, method: int, body: Any, number: int, labels: Labels = no_labels) -> PendingCall:
        """Send the request for the item of that number; in a profile it is an event, as a call is."""
        what = f"item {number} of {self.what}"
        begin = partial(self._agent.caller.begin, self._peer, method, body, 0.0, what, labels)
        if not profiles.get():
            return begin()
        begun: list[PendingCall] = []

        def request() -> Future[Any]:
            begun.append(begin())
            return begun[0].future

        record_call(self._event, request)
        return begun[0]


class Stream(Generic[T]):
    """Items of a generator on another worker, for ``for`` and ``async for``, and for one consumer at a time.

    As with a generator, there are no more items after its end or an error, and ``close`` ends it early. A stream also ends
    when no object refers to it any more.
    """

    def __init__(self, pulls: Pulls, call_soon: Callable[[Callable[[], object]], object]) -> None:
        self._pulls = pulls
        # A finalizer must do no I/O: the loop does it.
        self._finalizer = weakref.finalize(self, call_soon, pulls.close)
        self._finalizer.atexit = False

    def close(self) -> None:
        """End the stream: the generator is closed on its worker (``GeneratorExit`` is raised in it). Does not wait for that."""
        self._pulls.close()
        self._finalizer.detach()  # it keeps the requests, whose errors have the frames of the consumer

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> T:
        more, value = self._taken(self._pulls.first().wait)
        if not more:
            raise StopIteration(value)
        item: T = value
        return item

    def next_answer(self) -> Future[Any]:
        """Return a future that completes when ``take`` need not wait; the time-out begins now."""
        return self._pulls.first()

    def take(self) -> tuple[bool, Any]:
        """Return whether there was another item, and the item or what the generator returned; when ``next_answer`` is done."""
        return self._taken(self._pulls.first().value)

    def _taken(self, answer: Callable[[], Any]) -> tuple[bool, Any]:
        more = None
        try:
            more, value = answer()
        finally:
            if more is None:
                self.close()
        self._pulls.took(more)
        return more, value

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        more = None
        try:
            more, value = await self._pulls.first()
        finally:
            if more is None:
                self.close()
        self._pulls.took(more)
        if not more:
            raise StopAsyncIteration
        item: T = value
        return item

    async def aclose(self) -> None:
        """End the stream, as ``close`` does."""
        self.close()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Stream[T]:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Stream: {self._pulls.what}{', ended' if self._pulls.over else ''}>"


def stream(
    to: str | int | WorkerInfo,
    func: Callable[..., Iterable[T] | AsyncIterable[T]],
    args: tuple[Any, ...] | list[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
    *,
    ahead: int = STREAM_AHEAD,
) -> Stream[T]:
    """Run the generator ``func(*args, **kwargs)`` on the worker ``to``, and return an iterator of its items, as they come.

    The generator is at most ``ahead`` items ahead of the consumer; then it pauses, and holds no thread. Its exception is raised
    after the items before it. It is closed there when the stream is closed or dropped, or this worker is lost.
    In asyncio write ``async for``.

    Args:
        to: name, rank or ``WorkerInfo``.
        func: a generator function, an ``async`` one, or a function that returns something to iterate.
        args: positional arguments.
        kwargs: keyword arguments.
        timeout: seconds that a consumer waits for each item; the default is the agent's ``rpc_timeout``, 0 is for ever.
        ahead: how many items may be made before they are taken; with 0 each is made when it is asked for.

    Raises:
        UnknownWorkerError: there is no worker ``to``.
        SerializationError: an argument cannot be sent; the message names it.
        ValueError: ``ahead`` is negative, or no whole number.

    Iterating raises what ``func`` raised, ``RpcTimeoutError``, ``WorkerLostError``, and ``TypeError`` if ``func`` returned
    nothing to iterate; the stream has ended then. ``StopIteration.value`` is what the generator returned.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("a", "b") as (a, b), a.use():
        ...     with rpc.stream("b", range, (1, 1000)) as numbers:
        ...         print(next(numbers), next(numbers))
        1 2
    """
    return open_stream(current_agent(), to, func, args, kwargs, timeout, ahead)


def open_stream(
    agent: Agent, to: Any, function: Any, args: Any, kwargs: Any, timeout: float, ahead: int, name: str = ""
) -> Stream[Any]:
    """Run ``stream`` through an agent.

    Args:
        agent: the agent that calls.
        to, function, args, kwargs, timeout, ahead: see ``stream``.
        name: of the function, for people; by default its own.
    """
    if not isinstance(ahead, int) or ahead < 0:
        raise ValueError(f"ahead must be a whole number, 0 or more; you gave {ahead!r}")
    peer = agent.peers.find(to)
    body, own = request_body(peer, function, args, kwargs)
    what = f"the stream of {name or own} on worker {peer.info.name!r}"
    event = event_name("rpc_stream", function, agent, peer)
    pulls = Pulls(agent, peer, body, ahead, resolve_timeout(agent, timeout), what, event)
    return Stream(pulls, agent.timers.soon)
