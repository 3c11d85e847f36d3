"""``Buffer``: memory of one worker that the others read and write in ranges, while its owner computes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import ArgumentValueError, RpcError
from ...core.extend import Array, Tensor
from ...core.futures import Future
from ..current import current_agent
from ..functions.calling import resolve_timeout
from ..options import UNSET_RPC_TIMEOUT
from ..wire.libraries.in_place import note_written
from .arrays import bytes_of, elements
from .copies import LentCopy, fetch_copy
from .memory import BufferMemory, BufferPlace, private_content
from .owned import check_sealed, freed_error, owned_buffers
from .ranges import BufferRanges, wait_for

if TYPE_CHECKING:
    from .fetch import Fetch


class Buffer(BufferRanges):
    """Memory of this worker, which other workers read and write in ranges, also while this one computes.

    Give it as an argument or a result of calls: each worker that gets it can use it. On one machine a read or a write is one
    copy, made by the worker that asks for it. Between machines it is sent in pieces, and no thread for user functions is
    taken. Reads and writes are in no order with each other, nor with what the owner does with ``tensor``: let a call say that
    the values are ready. The memory stays until ``free()``, or until the owner shuts down; ``with`` frees it at the end.

    Args:
        data: the first values, a dense tensor or an array of numbers, which are copied; or a number of bytes, all zero.

    Raises:
        ArgumentTypeError: ``data`` is neither.
        ArgumentValueError: the number of bytes is negative.
        MemoryError: the machine does not have that much memory.
        AgentClosedError: RPC does not run here.

    Example:
        >>> import telegrad as tg
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     weights = rpc.rpc_sync("server", rpc.Buffer, args=(tg.zeros(3),))
        ...     weights.write_from(tg.ones(1), offset=4)
        ...     print(weights.read())
        tensor([0., 1., 0.])
    """

    def __init__(self, data: Any) -> None:
        agent = current_agent()
        array = None if isinstance(data, int) and not isinstance(data, bool) else elements("data", data)
        if array is None and data < 0:
            raise ArgumentValueError(f"data must be a number of bytes, 0 or more, or a tensor; you gave {data}")
        dtype, shape = (np.dtype(np.uint8), (data,)) if array is None else (array.dtype, array.shape)
        number, memory = owned_buffers(agent).add(math.prod(shape) * dtype.itemsize)
        self._set(agent, agent.number, number, dtype, shape, memory.place(), memory)
        if array is not None:
            np.copyto(self._array(memory), array)

    # -- what it is

    @property
    def tensor(self) -> Tensor:
        """The values at their owner, over the buffer's memory: what is written to it others read, and the reverse.

        Raises:
            RpcError: this worker is not the owner, or the buffer was freed.
        """
        return Tensor(self._array(self._own_memory("has its tensor at its owner; use read() or read_into(out) here")))

    def _own_memory(self, elsewhere: str) -> BufferMemory:
        """Return the memory at its owner; on other workers fail with this text."""
        self._check_owner(elsewhere)
        if self._memory is None or self._memory.freed:
            raise freed_error(self._number, self._agent.name)
        return self._memory

    def _check_owner(self, elsewhere: str) -> None:
        if self._agent.number != self._owner:
            raise RpcError(f"{self!r} {elsewhere}")

    def _array(self, memory: BufferMemory) -> Array:
        return self._shaped(memory.content)

    def _shaped(self, content: Array) -> Array:
        array: Array = content.view(self._dtype).reshape(self._shape)
        return array

    # -- reads and writes

    def read(self, timeout: float = UNSET_RPC_TIMEOUT) -> Tensor:
        """Return a copy of all values, in a tensor of the dtype and shape that the owner gave. Blocks.

        Args:
            timeout: as for ``read_into``.

        Raises:
            as for ``read_into``.
        """
        out = Tensor(np.empty(self._shape, self._dtype))
        self.read_into(out, timeout=timeout)
        return out

    def read_into(self, out: Any, offset: int = 0, timeout: float = UNSET_RPC_TIMEOUT) -> None:
        """Fill ``out`` with the bytes from ``offset`` on. Blocks.

        Args:
            out: a contiguous, writable tensor or array of numbers, of any dtype and shape.
            offset: where to begin, in bytes.
            timeout: seconds; 0 for no limit. By default that of all calls of this worker.

        Raises:
            ArgumentTypeError, ArgumentValueError: the range is not in the buffer, or ``out`` cannot be used.
            RpcError: the buffer was freed.
            WorkerLostError: its owner is lost.
            RpcTimeoutError: it took too long.
        """
        row = bytes_of("out", out, written=True)
        self._move(row, offset, timeout, writes=False)
        note_written(out)

    def read_into_async(self, out: Any, offset: int = 0, timeout: float = UNSET_RPC_TIMEOUT) -> Future[None]:
        """Do what ``read_into`` does, and return a future at once; ``out`` is for nothing else until that is done.

        Args:
            out, offset, timeout: as for ``read_into``.

        Raises:
            ArgumentTypeError, ArgumentValueError: as for ``read_into``; its other errors are in the future.
        """
        row = bytes_of("out", out, written=True)
        return self._move_later(row, offset, timeout, writes=False).then(lambda done: _noted(done, out))

    def write_from(self, data: Any, offset: int = 0, timeout: float = UNSET_RPC_TIMEOUT) -> None:
        """Write the bytes of ``data`` to the buffer, from ``offset`` on. Blocks until they are there.

        Args:
            data: a contiguous tensor or array of numbers.
            offset, timeout: as for ``read_into``.

        Raises:
            as for ``read_into``. After an error a part of the bytes may have been written.
        """
        self._move(bytes_of("data", data, written=False), offset, timeout, writes=True)

    def write_from_async(self, data: Any, offset: int = 0, timeout: float = UNSET_RPC_TIMEOUT) -> Future[None]:
        """Do what ``write_from`` does, and return a future at once; ``data`` must not change until that is done.

        Args:
            data, offset, timeout: as for ``write_from``.

        Raises:
            ArgumentTypeError, ArgumentValueError: as for ``write_from``; its other errors are in the future.
        """
        return self._move_later(bytes_of("data", data, written=False), offset, timeout, writes=True)

    # -- copies of values that do not change any more

    def seal(self) -> None:
        """Let nothing be written to it from now on, so that others may fetch it; ``write_from`` fails from now on.

        Let writes end before: of one that is under way, a part may still be written, and readers see it or not.
        The owner must not write to tensors that it got from ``tensor`` before: nothing could keep readers from seeing that.

        Raises:
            RpcError: this worker is not the owner, or the buffer was freed.
        """
        self._own_memory("is sealed by its owner; ask it to, by a call").seal()

    def fetch(self, timeout: float = UNSET_RPC_TIMEOUT) -> Tensor:
        """Return a copy of all values of a sealed buffer, which this worker lends to others that fetch it. Blocks.

        For values that many workers need. On one machine nothing is copied: the memory is mapped, and a page is copied when
        it is written to. Between machines a piece comes from the owner, or from a worker that has fetched it: each piece
        leaves the owner about once, however many readers there are. A copy is lent as long as its tensor is there; what the
        program writes to the tensor others do not see.

        Args:
            timeout: as for ``read_into``.

        Raises:
            RpcError: the buffer is not sealed, or was freed.
            WorkerLostError: its owner is lost. The loss of another worker that has pieces ends nothing.
            RpcTimeoutError: it took too long.
            MemoryError: the machine does not have that much memory.
        """
        seconds = resolve_timeout(self._agent, timeout)
        if (values := self._fetched_here()) is not None:
            return values
        fetch, copy = self._fetch(seconds)
        wait_for(fetch)
        return Tensor(self._shaped(copy.for_program()))

    def fetch_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Future[Tensor]:
        """Do what ``fetch`` does, and return a future of the tensor at once.

        Args:
            timeout: as for ``read_into``.

        Raises:
            RpcError: as for ``fetch``, on one machine; its other errors are in the future.
        """
        seconds = resolve_timeout(self._agent, timeout)
        if (values := self._fetched_here()) is not None:
            done: Future[Tensor] = Future()
            done.set_result(values)
            return done
        fetch, copy = self._fetch(seconds)
        return fetch.begin().then(lambda over: over.value() or Tensor(self._shaped(copy.for_program())))

    def _fetched_here(self) -> Tensor | None:
        """Return the values, if they are on this machine."""
        if (memory := self._mapped()) is None:
            return None
        check_sealed(memory, repr(self))
        content = private_content(self._place, self.nbytes)
        if content is None:
            raise freed_error(self._number, self.owner.name)
        return Tensor(self._shaped(content))

    def _fetch(self, seconds: float) -> tuple[Fetch, LentCopy]:
        return fetch_copy(self._agent, (self._owner, self._number), self.nbytes, seconds, f"the fetch of {self!r}")

    # -- its end

    def free(self) -> None:
        """Free the memory, at the owner. Reads and writes of others fail from now on, by name.

        Raises:
            RpcError: this worker is not the owner.
        """
        self._check_owner("is freed by its owner; ask it to, by a call")
        owned_buffers(self._agent).free(self._number)

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    # -- as an argument or a result

    def __reduce__(self) -> Any:
        return arrived, (self._owner, self._number, self._dtype, self._shape, self._place)


def arrived(owner: int, number: int, dtype: np.dtype[Any], shape: tuple[int, ...], place: BufferPlace) -> Buffer:
    """Return the buffer that another worker has given to this one.

    Args:
        owner: the number of its owner.
        number: its number there.
        dtype, shape: of its values.
        place: of its memory.
    """
    agent = current_agent()
    memory = owned_buffers(agent).memory(number) if agent.number == owner else None
    buffer = Buffer.__new__(Buffer)
    buffer._set(agent, owner, number, dtype, shape, place, memory)
    return buffer


def _noted(done: Future[None], out: Any) -> None:
    done.value()
    note_written(out)
