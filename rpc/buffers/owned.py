"""Buffers of one worker: found by their numbers, served to other machines, freed with it at the latest."""

from __future__ import annotations

import threading
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from ...core.errors import RpcError
from ...core.extend import Array, Tensor
from ..wire.messages import Method
from .memory import BufferMemory, new_memory

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.serving import ServerCall

_making = threading.Lock()


class OwnedBuffers:
    """Buffers of an agent. Any thread.

    Args:
        agent: answers requests for them from now on.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._numbers = count()
        self._memories: dict[int, BufferMemory] = {}
        agent.server.serve(Method.READ, self._read, quick=True)
        agent.server.serve(Method.WRITE, self._write_later, quick=True)
        agent.on_close.append(self.close)

    def add(self, size: int) -> tuple[int, BufferMemory]:
        """Return the number and the memory of a new buffer.

        Args:
            size: in bytes.

        Raises:
            MemoryError, OSError: as ``new_memory``.
        """
        number, memory = next(self._numbers), new_memory(size)
        self._memories[number] = memory
        return number, memory

    def free(self, number: int) -> None:
        """Free a buffer, unless it is freed already."""
        if (memory := self._memories.pop(number, None)) is not None:
            memory.free()

    def memory(self, number: int) -> BufferMemory | None:
        """Return the memory of a buffer; ``None`` if it was freed."""
        return self._memories.get(number)

    def close(self) -> None:
        """Free all buffers."""
        for number in list(self._memories):
            self.free(number)

    def _content(self, number: int) -> Array:
        memory = self._memories.get(number)
        if memory is None:
            raise freed_error(number, self._agent.name)
        return memory.content

    def _read(self, call: ServerCall) -> None:
        number, start, end = call.open()
        call.what = f"a read of buffer {number}"
        call.reply(Tensor(self._content(number)[start:end]))

    def _write_later(self, call: ServerCall) -> None:
        call.park()
        self._agent.threads.run_later(partial(self._write, call))

    def _write(self, call: ServerCall) -> None:
        try:
            number, start, end, piece = call.open()
            call.what = f"a write to buffer {number}"
            self._content(number)[start:end] = piece.numpy()
        except Exception as error:
            call.fail(error)
        else:
            call.reply(None)


def owned_buffers(agent: Agent) -> OwnedBuffers:
    """Return the buffers of an agent."""
    with _making:
        try:
            return agent.part(OwnedBuffers)
        except KeyError:
            owned = OwnedBuffers(agent)
            agent.add_part(owned)
            return owned


def freed_error(number: int, owner: str) -> RpcError:
    """Return the error of a read or write after the end of a buffer."""
    return RpcError(
        f"buffer {number} of worker {owner!r} was freed, or its owner has ended; read and write while the owner keeps it"
    )
