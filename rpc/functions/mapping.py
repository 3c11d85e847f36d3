"""``rpc.map``: calls of a function on several workers, one for each item, with few of them under way at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ...core.futures import Future, complete_once
from ..current import current_agent
from ..links.worker_info import WorkerInfo
from ..options import UNSET_RPC_TIMEOUT
from .calling import Later, call_function

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer

A = TypeVar("A")
T = TypeVar("T")
Progress = Callable[[int, "int | None"], object]
MAP_AHEAD = 2  # calls begun whose results were not taken yet, for each call that may be under way


class Results(Generic[T]):
    """Results of ``map``: an iterator and an asynchronous iterator.

    Args:
        places: the workers; each is in it as often as it may have calls under way.
        call: begins the call for an item on a worker.
        items: read as results are taken.
        ordered: give the results in the order of the items.
        progress: called after each result.

    Attributes:
        done: how many results were taken.
        total: how many there will be; ``None`` if ``items`` has no length.
    """

    def __init__(
        self,
        places: Iterable[Peer],
        call: Callable[[Peer, Any], Future[Any]],
        items: Iterable[Any],
        ordered: bool,
        progress: Progress | None,
    ) -> None:
        self.done = 0
        self.total = len(items) if isinstance(items, Sized) else None
        self._free = deque(places)
        self._limit = MAP_AHEAD * len(self._free)
        self._call = call
        self._items = enumerate(items)
        self._ordered = ordered
        self._progress = progress
        self._calls: dict[int, Future[Any]] = {}  # by number of the item: under way, or complete and not given yet
        self._complete: dict[int, None] = {}  # numbers of the complete ones, in that order
        self._lock = threading.Lock()
        self._changed: Future[None] = Future()  # completes when the next call does

    def close(self) -> None:
        """Begin no more calls, and give no more results. Those under way run to their end."""
        self._items = enumerate(())
        self._calls.clear()

    def __iter__(self) -> Results[T]:
        return self

    def __next__(self) -> T:
        while (changed := self._advance()) is not None:
            changed.wait()
        if not self._calls:
            raise StopIteration
        return self._take()

    def __aiter__(self) -> Results[T]:
        return self

    async def __anext__(self) -> T:
        while (changed := self._advance()) is not None:
            await changed
        if not self._calls:
            raise StopAsyncIteration
        return self._take()

    def _advance(self) -> Future[None] | None:
        """Begin calls; return ``None`` if a result is ready or there are no more, else a future that completes with a call."""
        with self._lock:
            changed = self._changed = Future()  # before the look at the results, so that no completion is missed
        self._begin_calls()
        return None if not self._calls or self._ready() is not None else changed

    def _begin_calls(self) -> None:
        while self._free and len(self._calls) < self._limit:
            for number, item in self._items:
                self._begin(number, item)
                break
            else:
                return

    def _begin(self, number: int, item: Any) -> None:
        peer = self._free.popleft()
        try:
            future = self._call(peer, item)
        except Exception as error:  # it cannot be sent: the error is raised in this item's turn
            future = Future()
            future.set_exception(error)
        self._calls[number] = future
        future.add_done_callback(partial(self._completed, peer, number))

    def _completed(self, peer: Peer, number: int, _: Future[Any]) -> None:
        with self._lock:
            self._free.append(peer)
            self._complete[number] = None
            changed = self._changed
        complete_once(changed)

    def _ready(self) -> int | None:
        """Return the number of the item whose result is to be taken next; ``None`` if it is not complete."""
        with self._lock:
            first = next(iter(self._calls if self._ordered else self._complete), None)
        return first if first in self._complete else None

    def _take(self) -> T:
        number = self._ready()
        assert number is not None
        del self._complete[number]
        taken = False
        try:
            value: T = self._calls.pop(number).value()
            taken = True
        finally:
            if not taken:
                self.close()
        self.done += 1
        if self._progress is not None:
            self._progress(self.done, self.total)
        return value


@overload
def map(  # noqa: A001
    workers: Sequence[str | int | WorkerInfo],
    func: Callable[[A], Later[T]],
    items: Iterable[A],
    *,
    per_worker: int = ...,
    timeout: float = ...,
    ordered: bool = ...,
    progress: Progress | None = ...,
) -> Results[T]: ...


@overload
def map(  # noqa: A001
    workers: Sequence[str | int | WorkerInfo],
    func: Callable[[A], T],
    items: Iterable[A],
    *,
    per_worker: int = ...,
    timeout: float = ...,
    ordered: bool = ...,
    progress: Progress | None = ...,
) -> Results[T]: ...


def map(  # noqa: A001  # as in concurrent.futures and multiprocessing
    workers: Sequence[str | int | WorkerInfo],
    func: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    per_worker: int = 2,
    timeout: float = UNSET_RPC_TIMEOUT,
    ordered: bool = True,
    progress: Progress | None = None,
) -> Results[Any]:
    """Run ``func(item)`` on workers for each item, and return an iterator of the results.

    A worker gets the next item when it has answered one. Calls begin as results are taken, so the items may be endless, and
    results do not pile up at a slow consumer. An error of a call is raised in its result's turn and ends the iteration; to go
    on, use a function that catches it. In asyncio write ``async for``.

    Args:
        workers: names, ranks or ``WorkerInfo``s.
        func: function of one item, as for ``rpc_async``.
        items: arguments, one for each call.
        per_worker: how many calls may be under way to one worker.
        timeout: seconds for each call; the default is the agent's ``rpc_timeout``, 0 is for ever.
        ordered: give the results in the order of the items, instead of as they come.
        progress: called with the number of results so far and of all (``None`` if ``items`` has no length) after each.

    Raises:
        UnknownWorkerError: one of ``workers`` is none.
        TypeError: ``workers`` is a single name.
        ValueError: there are no workers, or ``per_worker`` is below 1.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("a", "b") as (a, b), a.use():
        ...     print(list(rpc.map(["a", "b"], abs, [-1, 2, -3])))
        [1, 2, 3]
    """
    agent = current_agent()
    peers = _find_peers(agent, workers)
    if not isinstance(items, Iterable):
        raise TypeError(f"items must be a list or another iterable; you gave {items!r}")
    if not isinstance(per_worker, int) or per_worker < 1:
        raise ValueError(f"per_worker must be a whole number above 0; you gave {per_worker!r}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function of two numbers; you gave {progress!r}")

    def call(peer: Peer, item: Any) -> Future[Any]:
        return call_function(agent, peer.info, func, (item,), None, timeout)

    return Results(peers * per_worker, call, items, ordered, progress)


def _find_peers(agent: Agent, workers: Sequence[str | int | WorkerInfo]) -> list[Peer]:
    if isinstance(workers, (str, WorkerInfo)) or not isinstance(workers, Iterable):
        raise TypeError(f"workers must be a list; write [{workers!r}]")
    peers = [agent.peers.find(worker) for worker in workers]
    if not peers:
        raise ValueError("you gave no workers to map on")
    return peers
