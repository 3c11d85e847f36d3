"""Process groups over MPI (mpi4py): MPI's own collectives on the memory of the arrays.

Objects travel as pickles, and so do arrays of dtypes that MPI has no number for (float16, bfloat16, bool).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future as BackgroundFuture
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..base.errors import CollectiveError, CollectiveTimeoutError
from ..base.mpi import load
from ..core.extend import Array
from ..core.futures import interruptible
from .group import ProcessGroup, Work
from .reduction import ReduceOp, combine

WORK_POLL_SECONDS = 20e-6  # between questions whether a collective is complete, once it has taken as long
NATIVE = "bBhHiIlLqQfdFD"  # element types, in NumPy's letters, that MPI reduces


def mpi() -> Any:
    """Return mpi4py's module ``MPI``.

    Raises:
        CollectiveError: mpi4py or an MPI library is not installed.
    """
    try:
        return load()
    except ImportError as error:
        raise CollectiveError(f"backend='mpi' cannot be used: {error}, or use backend='rpc'") from error


class MpiGroup(ProcessGroup):
    """Process group over an MPI communicator.

    Args:
        communicator: of its members; its ranks are the indices.
        name, ranks, rank, timeout: see ``ProcessGroup``.
    """

    backend = "mpi"

    def __init__(self, communicator: Any, name: str, ranks: Sequence[int], rank: int, timeout: float) -> None:
        super().__init__(name, ranks, rank, timeout)
        self._mpi = mpi()
        self._communicator = communicator
        operations = {"AVG": "SUM", "PRODUCT": "PROD"}
        self._operations = {op: getattr(self._mpi, operations.get(op.name, op.name)) for op in ReduceOp}
        # One thread: MPI matches collectives by their order.
        self._background = ThreadPoolExecutor(1, f"telegrad-mpi-{name}")
        self._latest: BackgroundFuture[None] | None = None

    def run(self, body: Callable[[], Any], in_background: bool) -> Work | None:
        if not in_background and (self._latest is None or self._latest.done()):
            body()
            return None
        work = Work()
        self._latest = self._background.submit(work.complete, body)
        if in_background:
            return work
        work.wait()
        return None

    def begin(self, name: str, like: Any, size: int = 0) -> str:
        return f"{name}({like})" if like is not None else name

    def all_gather(self, call: str, content: Any) -> list[Any]:
        if content is None:
            self._wait(self._communicator.Ibarrier(), call)
            return [None] * self.size()
        if not isinstance(content, np.ndarray):
            objects: list[Any] = self._communicator.allgather(content)
            return objects
        sizes = self._communicator.allgather(content.size)
        result = np.empty(sum(sizes), content.dtype)
        self._wait(self._communicator.Iallgatherv(_bytes(content), _byte_parts(result, sizes)), call)
        return np.split(result, np.cumsum(sizes)[:-1])

    def all_reduce(self, call: str, array: Array, op: ReduceOp) -> None:
        if array.dtype.char not in NATIVE:
            array[:] = combine(self.all_gather(call, array), op)
            return
        self._wait(self._communicator.Iallreduce(self._mpi.IN_PLACE, array, self._operations[op]), call)
        self._average(array, op)

    def broadcast(self, call: str, content: Any, source: int) -> Any:
        if not isinstance(content, np.ndarray):
            return self._communicator.bcast(content, source)
        if not content.flags.writeable:
            content = content.copy()
        self._wait(self._communicator.Ibcast(_bytes(content), source), call)
        return content

    def reduce(self, call: str, array: Array, op: ReduceOp, target: int) -> Array | None:
        if array.dtype.char not in NATIVE:
            parts = self.gather(call, array, target)
            return None if parts is None else combine(parts, op)
        result = np.empty_like(array) if self.index == target else None
        self._wait(self._communicator.Ireduce(array, result, self._operations[op], target), call)
        return None if result is None else self._average(result, op)

    def gather(self, call: str, content: Any, target: int) -> list[Any] | None:
        objects: list[Any] | None = self._communicator.gather(content, target)
        return objects

    def scatter(self, call: str, contents: Sequence[Any] | None, source: int) -> Any:
        return self._communicator.scatter(contents, source)

    def all_to_all(self, call: str, contents: Sequence[Any]) -> list[Any]:
        if not all(isinstance(content, np.ndarray) for content in contents):
            objects: list[Any] = self._communicator.alltoall(list(contents))
            return objects
        given = [content.size for content in contents]
        sizes = self._communicator.alltoall(given)
        result = np.empty(sum(sizes), contents[0].dtype)
        parts = _byte_parts(np.concatenate(contents), given), _byte_parts(result, sizes)
        self._wait(self._communicator.Ialltoallv(*parts), call)
        return np.split(result, np.cumsum(sizes)[:-1])

    def reduce_scatter(self, call: str, arrays: Sequence[Array], op: ReduceOp) -> Array:
        if arrays[0].dtype.char not in NATIVE:
            return combine(self.all_to_all(call, arrays), op)
        result = np.empty_like(arrays[self.index])
        counts = [array.size for array in arrays]
        operation = self._operations[op]
        given = np.concatenate(arrays)  # a name keeps it: the request does not, and MPI reads it until the end
        self._wait(self._communicator.Ireduce_scatter(given, result, counts, operation), call)
        return self._average(result, op)

    def send(self, content: Any, target: int, tag: int) -> None:
        self._wait(self._communicator.isend(content, target, tag), f"send(tag={tag}) to rank {self.ranks[target]}")

    def receive(self, source: int, tag: int) -> Any:
        what = f"recv(tag={tag}) from rank {self.ranks[source]}"
        deadline = time.monotonic() + self.timeout
        while not (matched := self._communicator.improbe(source, tag)):
            self._check(deadline, what)
        return interruptible(matched.recv)

    def close(self) -> None:
        self._background.shutdown()
        self._communicator.Free()

    def _average(self, array: Array, op: ReduceOp) -> Array:
        if op is ReduceOp.AVG:
            np.divide(array, self.size(), out=array)
        return array

    def _wait(self, request: Any, what: str) -> None:
        deadline = time.monotonic() + self.timeout
        while not request.Test():
            self._check(deadline, what)

    def _check(self, deadline: float, what: str) -> None:
        now = time.monotonic()
        if now > deadline:
            raise CollectiveTimeoutError(
                f"{what} of group {self.name!r} took longer than {self.timeout:g} s: call it on all ranks of the group, in the "
                "same order, or give the group a longer timeout="
            )
        interruptible(time.sleep, WORK_POLL_SECONDS if now > deadline - self.timeout + WORK_POLL_SECONDS else 0)


def _bytes(row: Array) -> Array:
    return row.view(np.uint8)


def _byte_parts(row: Array, sizes: Sequence[int]) -> tuple[Array, list[int]]:
    """Return a row for MPI, cut into parts of so many elements each."""
    return _bytes(row), [size * row.itemsize for size in sizes]
