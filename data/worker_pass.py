"""Pass over a loader with worker processes: tasks go to the workers in turn, batches come in the order of the tasks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

from .errors import DataLoaderError, DataLoaderTimeoutError
from .messages import Task
from .place import Place
from .pool import Pool, Worker, rebuild


class WorkerPass:
    """Iterator over batches. The number of a batch decides which worker makes it, so passes can be repeated.

    Args:
        pool: the workers.
        indices: for each batch, its number and the argument of the fetcher: sample indices.
        seed: the seed of the pass.
        prefetch: number of batches that each worker makes in advance.
        timeout: seconds to wait for a batch; 0 is no limit.
        in_order: whether batches come in the order of ``indices``, or when they are ready.
        own: whether the pool ends with the pass.
        place: notes which batches were given.
    """

    def __init__(
        self,
        pool: Pool,
        indices: Iterator[tuple[int, Any]],
        seed: int,
        prefetch: int,
        timeout: float,
        in_order: bool,
        own: bool,
        place: Place,
    ) -> None:
        self._pool = pool
        self._close: Callable[[], Any] = weakref.finalize(self, pool.close) if own else _nothing
        self._indices = indices
        self._prefetch = prefetch
        self._timeout = timeout or None
        self._in_order = in_order
        self._workers = cycle(pool.workers)
        self._free = dict.fromkeys(pool.workers, prefetch)  # tasks that it may still get; no entry if it ended
        self._pending: dict[int, Worker] = {}  # by number; the order is that of the tasks
        self._place = place
        self._epoch = pool.begin(seed)
        try:
            for _ in range(prefetch * len(pool.workers)):
                self._send_next()
        except BaseException:
            pool.close()
            raise

    def __iter__(self) -> WorkerPass:
        return self

    def __next__(self) -> Any:
        if self._epoch != self._pool.epoch:
            raise DataLoaderError("a newer pass over this DataLoader has begun; persistent workers serve one at a time")
        try:
            outcome = self._next()
        except BaseException:
            # The exception's traceback keeps this pass alive, and the workers must end.
            self._pool.close()
            raise
        if isinstance(outcome, Exception):
            try:
                raise outcome
            finally:
                del self, outcome  # as above: when the exception ends a loop, the pass and its workers must go
        if outcome is None:
            self._close()
            self._place.ended = True
            raise StopIteration
        return outcome[0]

    def _next(self) -> Any:
        """Return a batch in a tuple, an exception of a worker, or ``None`` at the end."""
        while self._pending:
            number = self._ready()
            if number is None:
                self._wait()
                continue
            del self._pending[number]
            worker, answer = self._pool.arrived.pop(number)
            if answer.end:
                self._free.pop(worker, None)
                continue
            if worker in self._free:
                self._free[worker] += 1
            self._send_next()
            if answer.failure is not None:
                return rebuild(answer.failure, worker)
            return (self._place.give(number, worker.unpack(answer, 2 * self._prefetch + 1)),)
        return None

    def _ready(self) -> int | None:
        arrived = self._pool.arrived
        if not self._in_order:
            return next(iter(arrived), None)
        first = next(iter(self._pending))
        return first if first in arrived else None

    def _wait(self) -> None:
        if not self._pool.receive(self._timeout):
            late = next(iter(self._pending.values()))
            raise DataLoaderTimeoutError(
                f"no batch came within {self._timeout:g} s; the next one is to come from {late}"
            )

    def _send_next(self) -> None:
        """Send the next task to the next worker that may get one."""
        if not any(self._free.values()):
            return
        for number, index in self._indices:
            worker = next(worker for worker in self._workers if self._free.get(worker))
            self._free[worker] -= 1
            self._pending[number] = worker
            worker.send(Task(self._epoch, number, index))
            return


def _nothing() -> None:
    pass
