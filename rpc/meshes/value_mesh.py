"""``ValueMesh``: the results of a call on a mesh, each as soon as it is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ...base.errors import ArgumentKindError, ArgumentValueError
from ...core.futures import Future, attempt, complete_once
from ..wire.bundle import NONE
from ..wire.failures import rebuild_failure
from .shapes import find_place, place_of

if TYPE_CHECKING:
    from contextvars import Context

    from ..calls.codec import Codec
    from ..links.worker_info import WorkerInfo
    from ..wire.bundle import Content

T = TypeVar("T")
CallBack = Callable[[list[Callable[[], object]]], object]
_CLOSED: Any = object()  # a result that was not opened yet


class ValueMesh(Generic[T]):
    """Results of a call on a mesh: one for each worker, in the order of the mesh.

    A worker that failed has an exception in the place of its value: what its function raised, or ``WorkerLostError``,
    ``RpcTimeoutError`` and so on, with its name. ``values()`` raises the first of them. Each use waits for the results that it
    needs; a result is unpickled when it is first used.

    Args:
        workers: the workers of the mesh.
        shape: dimensions of the mesh.
        codec: opens results.
        call_back: runs callbacks of futures, in a thread for them.

    Attributes:
        future: completes when every result is there; cancel it to give the call up.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import cluster
        >>> with cluster(3):
        ...     squares = rpc.mesh().call(pow, (3, 2))
        ...     print(list(squares), squares["worker1"], squares.errors())
        [9, 9, 9] 9 {}
    """

    reduces = False

    def __init__(self, workers: Sequence[WorkerInfo], shape: dict[str, int], codec: Codec, call_back: CallBack) -> None:
        self.workers = tuple(workers)
        self.shape = shape
        self.future: Future[None] = Future()  # not with this object, which has the future: no collection would be due
        self._codec = codec
        self._call_back = call_back
        self._lock = threading.Lock()
        self._contents: list[Content | None] = [None] * len(workers)
        self._opened: list[Any] = [_CLOSED] * len(workers)
        self._count = 0
        self._waiting: list[tuple[int, int, Future[None]]] = []  # place or -1, number of results, what they wait for

    def add(self, results: Sequence[tuple[int, Content]]) -> None:
        """Add results with their places, as they come; for the call."""
        with self._lock:
            for index, content in results:
                if self._contents[index] is None:
                    self._contents[index] = content
                    if content is NONE:
                        self._opened[index] = None
                    self._count += 1
            ready = [each for each in self._waiting if self._has(each[0], each[1])]
            self._waiting = [each for each in self._waiting if each not in ready]
            complete = self._count == len(self.workers)
        for _, _, future in ready:
            complete_once(future)
        if complete and (callbacks := self.future.try_finish()):
            self._call_back(callbacks)

    def futures(self) -> Sequence[Future[Any]]:
        """Return the futures that wait for results; for observers."""
        return [self.future, *(future for _, _, future in self._waiting)]

    def complete(self, results: Sequence[tuple[int, Content]], context: Context) -> None:
        """Do nothing: ``add`` has all results; for the call.

        Args:
            results: all results.
            context: of the code that made the call.
        """

    def _has(self, place: int, count: int) -> bool:
        return self._count >= count if place < 0 else self._contents[place] is not None

    def _await(self, place: int, count: int, timeout: float | None) -> None:
        if self._has(place, count):
            return
        future: Future[None] = Future()
        future.canceller, future.driver = self.future.canceller, self.future.driver
        with self._lock:
            if self._has(place, count):
                return
            self._waiting.append((place, count, future))
        try:
            future.wait(timeout)
        finally:
            with self._lock:
                self._waiting = [each for each in self._waiting if each[2] is not future]

    def wait(self, any: int | None = None, timeout: float | None = None) -> ValueMesh[T]:  # noqa: A002
        """Wait until all results are there, or ``any`` of them; return this object.

        Args:
            any: number of results that are enough, errors included; all by default.
            timeout: seconds to wait here; the call has a time-out of its own.

        Raises:
            TimeoutError: they did not come in ``timeout`` seconds.
            ArgumentValueError: ``any`` is not between 1 and the number of workers.
        """
        if any is None:
            self.future.wait(timeout)
            return self
        if not isinstance(any, int) or not 1 <= any <= len(self):
            raise ArgumentValueError(f"any= is a number of results from 1 to {len(self)}; you gave {any!r}")
        self._await(-1, any, timeout)
        return self

    def __await__(self) -> Generator[Any, None, ValueMesh[T]]:
        """Wait, in asyncio, until all results are there."""
        yield from self.future.__await__()
        return self

    def done(self) -> bool:
        """Return whether all results are there."""
        return self.future.done()

    def cancel(self) -> bool:
        """Give the call up; results that are missing are ``RpcCancelledError`` then. Return False if all were there."""
        return self.future.cancel()

    def ready(self) -> list[WorkerInfo]:
        """Return the workers whose results are there, in the order of the mesh."""
        return [worker for worker, content in zip(self.workers, self._contents) if content is not None]

    def values(self) -> list[T]:
        """Return all values; raise the first error in the order of the mesh."""
        values = list(self)
        for value in values:
            if isinstance(value, BaseException):
                try:
                    raise value
                finally:
                    del self, values, value  # the error has this frame: else the values would wait for a collection
        return values

    def errors(self) -> dict[str, BaseException]:
        """Return the errors by the names of the workers."""
        return {info.name: value for info, value in zip(self.workers, self) if isinstance(value, BaseException)}

    def items(self) -> Iterator[tuple[WorkerInfo, T]]:
        """Iterate over the workers and their results."""
        return zip(self.workers, self)

    def __len__(self) -> int:
        return len(self.workers)

    def __iter__(self) -> Iterator[T]:
        opened = self._opened
        for place in range(len(self.workers)):
            yield self._value(place) if (value := opened[place]) is _CLOSED else value

    def __getitem__(self, worker: int | str | WorkerInfo | tuple[int, ...]) -> T:
        """Return the result of a worker.

        Args:
            worker: its name or ``WorkerInfo``, its place in the mesh, or its coordinates, a tuple.

        Raises:
            UnknownWorkerError: the mesh has no such worker.
            ArgumentIndexError: the mesh has no such place.
            ArgumentValueError: there are other numbers of coordinates and dimensions.
        """
        return self._value(find_place(self.workers, self.shape, worker))

    def at(self, **coordinates: int) -> T:
        """Return the result of the worker with these coordinates: ``at(host=0, rank=1)``."""
        return self._value(place_of(self.shape, coordinates))

    def _value(self, place: int) -> Any:
        if self._opened[place] is _CLOSED:
            if self._contents[place] is None:
                self._await(place, 0, None)
            content = self._contents[place]
            assert content is not None
            value = self._open(content)
            with self._lock:  # of two threads that open it at the same time, both get the first one's
                if self._opened[place] is _CLOSED:
                    self._opened[place] = value
        return self._opened[place]

    def _open(self, content: Content) -> Any:
        if content.is_none:
            return None
        value, problem = attempt(lambda: self._codec.open_content(content))
        if problem is not None:
            return problem
        return rebuild_failure(cast("Any", value)) if content.failed else value

    def __reduce__(self) -> Any:
        raise ArgumentKindError("a ValueMesh stays where its call was made; send list(values), which waits for them")

    def __repr__(self) -> str:
        return f"<ValueMesh of {len(self)} workers, {self._count} results>"
