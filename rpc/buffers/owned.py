"""Buffers of one worker: found by their numbers, served to other machines, freed with it at the latest."""

from __future__ import annotations

import threading
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import RpcError
from ...core.extend import Array, Tensor, memory_address
from ...core.futures import attempt
from ..lanes.large.landing import Landing
from ..wire.messages import Method, Topic
from . import fetch
from .memory import BufferMemory, new_memory
from .pieces import SMALL_BYTES
from .sources import LEFT, SourceAsk, Sources
from .written_range import written_range

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.server_call import ServerCall
    from ..links.peer import Peer

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
        self._sources: dict[int, Sources] = {}  # of the buffers that others have fetched
        agent.server.serve(Method.READ, self._read, quick=True)
        agent.server.serve(Method.WRITE, self._write, quick=True)
        agent.server.landings[Method.WRITE] = self._place
        agent.server.serve(Method.SOURCES, self._sources_asked, quick=True)
        agent.control.on(Topic.FETCH, self._reader_left)
        agent.losses.on_lost.append(self._lost)
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
        if (sources := self._sources.pop(number, None)) is not None:
            sources.close(partial(freed_error, number, self._agent.name))

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

    def _writable(self, number: int) -> Array:
        content = self._content(number)
        check_writable(self._memories[number], f"buffer {number} of worker {self._agent.name!r}")
        return content

    def _read(self, call: ServerCall) -> None:
        number, start, end = call.open()
        call.what = f"a read of buffer {number}"
        piece = Tensor(self._content(number)[start:end])
        if end - start <= SMALL_BYTES:
            call.reply(piece)
        else:  # a thread that may wait sends it without a copy
            call.park()
            self._agent.threads.run_transfer(partial(_reply, call, piece))

    def _sources_asked(self, call: ServerCall) -> None:
        ask = SourceAsk(*call.open())
        call.what = f"a fetch of buffer {ask.number}"
        size = self._content(ask.number).size
        check_sealed(self._memories[ask.number], f"buffer {ask.number} of worker {self._agent.name!r}")
        call.park()
        self._sources_of(ask.number, size).asked(call.peer.number, ask, call)

    def _reader_left(self, peer: Peer, payload: bytes) -> None:
        number, copy = LEFT.unpack(payload)
        if (memory := self._memories.get(number)) is not None:  # also if its first request comes later
            self._sources_of(number, memory.content.size).left((peer.number, copy))

    def _sources_of(self, number: int, size: int) -> Sources:
        with _making:
            if (sources := self._sources.get(number)) is None:
                count = -(-size // fetch.FETCH_PIECE_BYTES)
                sources = self._sources[number] = Sources(count, self._agent.number)
            return sources

    def _lost(self, peer: Peer) -> None:
        for sources in list(self._sources.values()):
            sources.lost(peer.number)

    def _place(self, front: memoryview, size: int) -> Landing | None:
        """Return where the bytes of a write are received: the buffer itself, without a copy between."""
        number, start, end = written_range(front) or (-1, 0, 0)
        memory = self._memories.get(number)
        if memory is None or memory.sealed or not 0 <= start <= end <= memory.content.size or end - start != size:
            return None  # its answer says why
        return Landing(memory.content[start:end].data)

    def _write(self, call: ServerCall) -> None:
        number, start, end, piece = call.open()
        call.what = f"a write to buffer {number}"
        here = self._writable(number)[start:end]
        if memory_address(piece.numpy()) == memory_address(here):  # it was received there
            call.reply(None)
        else:
            call.park()
            self._agent.threads.run_transfer(partial(self._copy, call, number, range(start, end), piece.numpy()))

    def _copy(self, call: ServerCall, number: int, span: range, piece: Array) -> None:
        # It may have been sealed or freed meanwhile.
        _, error = attempt(lambda: np.copyto(self._writable(number)[span.start : span.stop], piece))
        _reply(call, None) if error is None else call.fail(error)


def _reply(call: ServerCall, value: Any) -> None:
    _, error = attempt(lambda: call.reply(value))
    if error is not None:
        call.fail(error)


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


def check_sealed(memory: BufferMemory, what: str) -> None:
    """Raise an ``RpcError`` for the fetch of a buffer that is not sealed."""
    if not memory.sealed:
        raise RpcError(
            f"{what} may still change, so that it cannot be fetched; let its owner call seal(), or use read()"
        )


def check_writable(memory: BufferMemory, what: str) -> None:
    """Raise an ``RpcError`` for a write to a sealed buffer."""
    if memory.sealed:
        raise RpcError(f"{what} is sealed: it cannot be written to; make another buffer for other values")
