"""``MeshStream``: the items of generators that run on the workers of a mesh, as they come.

The function and its arguments travel over the tree, as those of a call do. Then each worker has a stream of its own with the
caller (``functions/streaming.py``), whose items are a few ahead of the consumer.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...core.futures import Future, attempt, complete_once
from ..functions.calling import name_of
from ..functions.producing import items_of
from ..functions.streaming import Stream, open_stream

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.worker_info import WorkerInfo
    from .value_mesh import ValueMesh

T = TypeVar("T")


class Arrivals:
    """Places whose next item is there, in the order in which they came.

    Attributes:
        places: the places.
        changed: completes when another one comes.
    """

    def __init__(self) -> None:
        self.places: deque[int] = deque()
        self.changed: Future[None] = Future()
        self._lock = threading.Lock()

    def came(self, place: int, _: object = None) -> None:
        """Note that the next item of a place, or its end, is there. Any thread."""
        with self._lock:
            self.places.append(place)
            changed = self.changed
        complete_once(changed)

    def awaited(self) -> Future[None] | None:
        """Return a future that completes when a place comes; ``None`` if one is there."""
        with self._lock:
            if self.places:
                return None
            if self.changed.done():
                self.changed = Future()
            return self.changed


class MeshStream(Generic[T]):
    """Items of generators on the workers of a mesh, for ``for`` and ``async for``; ``Mesh.stream`` makes it.

    Each item is a pair: the worker and the item. Workers whose items are there take turns. A worker that fails or is lost gives
    no more items, and the others go on; at the end of all the first error in the order of the mesh is raised. ``close`` ends
    all generators early; so does dropping the stream.

    Args:
        workers: the workers of the mesh.
        functions: on each worker a reference to what makes its generator.
        opened: opens the stream of a worker, with its reference.

    Attributes:
        errors: the errors so far, by the names of the workers.
    """

    def __init__(
        self,
        workers: Sequence[WorkerInfo],
        functions: ValueMesh[Any],
        opened: Callable[[WorkerInfo, Any], Stream[T]],
    ) -> None:
        self._workers = tuple(workers)
        self._streams: dict[int, Stream[T]] = {}  # by place: those that go on
        self._failures: dict[int, BaseException] = {}
        self._left = len(workers)
        self._latest = -1  # place of the latest item: the next one of its worker is asked for only when it is wanted
        self._arrivals = Arrivals()
        self._opening: ValueMesh[Any] | None = functions
        self._closed = False
        functions.future.add_done_callback(partial(self._open, functions, opened))

    @property
    def errors(self) -> dict[str, BaseException]:
        return {self._workers[place].name: error for place, error in sorted(self._failures.items())}

    def _open(self, functions: ValueMesh[Any], opened: Callable[[WorkerInfo, Any], Stream[T]], _: object) -> None:
        """Open the streams of all workers that have the function."""
        self._opening = None
        for place, (worker, function) in enumerate(functions.items()):
            failed = isinstance(function, BaseException)
            stream, problem = (None, function) if failed else attempt(opened, worker, function)
            if problem is not None:
                self._failures[place] = problem
                self._arrivals.came(place)
            elif stream is not None:
                self._streams[place] = stream
                self._ask(place)
        if self._closed:
            self.close()

    def _ask(self, place: int) -> None:
        if (stream := self._streams.get(place)) is not None:
            stream.next_answer().add_done_callback(partial(self._arrivals.came, place))

    def _take(self) -> tuple[WorkerInfo, T] | None:
        """Return the next item and its worker; ``None`` if a worker has ended instead."""
        place = self._arrivals.places.popleft()
        if (stream := self._streams.get(place)) is not None:
            answer, problem = attempt(stream.take)
            if problem is None and answer is not None and answer[0]:
                self._latest = place
                return self._workers[place], answer[1]
            self._streams.pop(place, None)
            if problem is not None:
                self._failures[place] = problem
        self._left -= 1
        return None

    def _wanted(self) -> Future[None] | None:
        """Return a future that completes when ``_take`` can be called; ``None`` if it can."""
        self._ask(self._latest)
        self._latest = -1
        return self._arrivals.awaited()

    def _raise_first(self) -> None:
        if self._failures and not self._closed:
            self._closed = True  # once
            raise self._failures[min(self._failures)]

    def close(self) -> None:
        """End all generators (``GeneratorExit`` is raised in them), without waiting for that."""
        self._closed, self._left = True, 0
        if (opening := self._opening) is not None:
            opening.cancel()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.close()
        self._arrivals.came(-1)  # wakes a consumer in another thread

    def __iter__(self) -> MeshStream[T]:
        return self

    def __next__(self) -> tuple[WorkerInfo, T]:
        while self._left > 0:
            if (changed := self._wanted()) is not None:
                changed.wait()
            elif (item := self._take()) is not None:
                return item
        self._raise_first()
        raise StopIteration

    def __aiter__(self) -> MeshStream[T]:
        return self

    async def __anext__(self) -> tuple[WorkerInfo, T]:
        while self._left > 0:
            if (changed := self._wanted()) is not None:
                await changed
            elif (item := self._take()) is not None:
                return item
        self._raise_first()
        raise StopAsyncIteration

    def __enter__(self) -> MeshStream[T]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> MeshStream[T]:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MeshStream of {len(self._workers)} workers, {self._left} not ended>"


def open_generator(
    agent: Agent, name: str, timeout: float, ahead: int, worker: WorkerInfo, function: Any
) -> Stream[Any]:
    """Open the stream of one worker.

    Args:
        agent: the agent that calls.
        name: of the function, for people.
        timeout: seconds that a consumer waits for an item.
        ahead: how many items may be made before they are taken.
        worker: the worker.
        function: reference to what makes the generator.
    """
    return open_stream(agent, worker, make_items, (function,), None, timeout, ahead, name)


def make_items(function: Any) -> Any:
    """Return an iterator of what a function of this worker returns. Other workers call this.

    Args:
        function: reference to a ``partial`` of the user's function.
    """
    made = function.local_value()
    return items_of(made(), name_of(made.func))
