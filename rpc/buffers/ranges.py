"""``BufferRanges``: a buffer's memory, and ranges of it on their way: a copy on one machine, pieces between machines."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import ArgumentTypeError, ArgumentValueError, WorkerLostError
from ...core.futures import Future, attempt, complete_once
from ..functions.calling import resolve_timeout
from ..options import maps_memory
from .memory import BufferMemory, BufferPlace, map_memory
from .owned import check_writable, freed_error
from .sent_range import sent_range

if TYPE_CHECKING:
    from ...core.extend import Array
    from ..agent import Agent
    from ..links.worker_info import WorkerInfo
    from .fetch import Fetch
    from .pieces import Pieces


class BufferRanges:
    """Memory of one worker as a worker sees it, and the ranges of it that are read and written."""

    def _set(
        self,
        agent: Agent,
        owner: int,
        number: int,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        place: BufferPlace,
        memory: BufferMemory | None,
    ) -> None:
        self._agent, self._owner, self._number = agent, owner, number
        self._dtype, self._shape, self._place = dtype, shape, place
        self._memory = memory  # ``None``: it is on another machine, or was freed

    @property
    def owner(self) -> WorkerInfo:
        """Name and rank of the worker that has the memory."""
        return self._agent.peers.info(self._owner)

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return math.prod(self._shape) * self._dtype.itemsize

    def __repr__(self) -> str:
        return f"Buffer({self._number} of {self.owner.name!r}, {self._dtype} {list(self._shape)})"

    # -- ranges on their way

    def _move(self, row: Array, offset: int, timeout: float, writes: bool) -> None:
        start, seconds = self._start(row, offset), resolve_timeout(self._agent, timeout)
        if (memory := self._mapped()) is not None:
            self._copy(memory, row, start, writes)
        else:
            wait_for(self._sent(row, start, seconds, writes))

    def _move_later(self, row: Array, offset: int, timeout: float, writes: bool) -> Future[None]:
        start, seconds = self._start(row, offset), resolve_timeout(self._agent, timeout)
        if (memory := self._mapped()) is None:
            return self._sent(row, start, seconds, writes).begin()
        done: Future[None] = Future()
        copy = partial(attempt, self._copy, memory, row, start, writes)
        self._agent.threads.run_later(lambda: complete_once(done, *copy()))
        return done

    def _start(self, row: Array, offset: Any) -> int:
        try:
            start = operator.index(offset)
        except TypeError:
            raise ArgumentTypeError(f"offset must be a number of bytes; you gave {offset!r}") from None
        if not 0 <= start <= self.nbytes - row.size:
            raise ArgumentValueError(
                f"the range of {row.size} bytes from offset {start} is not in {self!r}, which has {self.nbytes} bytes"
            )
        return start

    # -- on one machine

    def _mapped(self) -> BufferMemory | None:
        """Return the memory, if it is on this machine.

        Raises:
            RpcError: the buffer was freed.
        """
        if self._memory is None and self._owner != self._agent.number and maps_memory(self._agent.options.lanes):
            self._memory = map_memory(self._place, self.nbytes)
        if self._memory is not None:
            self._check(self._memory)
        return self._memory

    def _copy(self, memory: BufferMemory, row: Array, start: int, writes: bool) -> None:
        if writes:
            check_writable(memory, repr(self))
        here = memory.content[start : start + row.size]
        np.copyto(here, row) if writes else np.copyto(row, here)
        self._check(memory)  # it may have been freed meanwhile

    def _check(self, memory: BufferMemory) -> None:
        self._agent.state.check_open()
        peer = self._agent.peers.at(self._owner)
        peer.check_present()
        if memory.owner_ended:
            raise WorkerLostError(f"worker {peer.info.name!r} has ended, and {self!r} with it", peer.info.name)
        if memory.freed:
            raise freed_error(self._number, peer.info.name)

    # -- between machines

    def _sent(self, row: Array, start: int, seconds: float, writes: bool) -> Pieces:
        what = f"the {'write to' if writes else 'read of'} {self!r}"
        return sent_range(self._agent, self._owner, self._number, row, start, seconds, what, writes)


def wait_for(transfer: Pieces | Fetch) -> None:
    """Begin a transfer, and wait for its end.

    Args:
        transfer: a range, or all pieces of a sealed buffer.
    """
    _, error = attempt(lambda: transfer.begin().wait())
    if error is not None:  # also Ctrl-C
        transfer.fail(error)
        raise error
