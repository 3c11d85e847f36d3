"""Copies of other workers' buffers: fetched in pieces, and lent to other readers as long as the program has its tensor."""

from __future__ import annotations

import threading
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from ...base.errors import RpcError, RpcTimeoutError
from ...core.extend import Array, Tensor
from ..calls.landing_future import LandingFuture
from ..options import maps_memory
from ..wire.messages import Method, Topic
from . import fetch
from .fetch import Fetch, FetchNews
from .fetch_plan import ORIGINAL, Holder
from .machine import machine_name
from .memory import BufferMemory, BufferPlace, new_memory, private_content
from .sources import LEFT, SourceAsk

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.futures import Future
    from ..agent import Agent
    from ..calls.server_call import ServerCall

_making = threading.Lock()
LentKey = tuple[int, int]  # the owner of a buffer, and its number there


class LentCopy:
    """Copy of a buffer, whole or not yet: in memory of its own, or mapped from another worker of this machine.

    Args:
        key: of the buffer.
        number: of the copy at this worker.
        size: in bytes.

    Attributes:
        arrived: the pieces that are here, and are lent.
    """

    def __init__(self, key: LentKey, number: int, size: int) -> None:
        self.key, self.number, self.size = key, number, size
        self.arrived: set[int] = set()
        self._lock = threading.Lock()
        self._memory: BufferMemory | None = None
        self._mapped: Array | None = None

    @property
    def memory(self) -> BufferMemory:
        """The memory of its own, which is made at the first use.

        Raises:
            MemoryError, OSError: as ``new_memory``.
        """
        with self._lock:
            if self._memory is None:
                self._memory = new_memory(self.size)
            return self._memory

    def piece(self, number: int) -> Array:
        """Return the bytes of a piece, in memory of its own."""
        start = number * fetch.FETCH_PIECE_BYTES
        return self.memory.content[start : start + fetch.FETCH_PIECE_BYTES]

    def map(self, place: BufferPlace) -> bool:
        """Map the whole copy of another worker of this machine; return False if that cannot be done."""
        self._mapped = private_content(place, self.size)
        return self._mapped is not None

    def for_program(self) -> Array:
        """Return the bytes for the program: what it writes to them is not lent. They keep this copy."""
        return self.memory.private(keeps=self) if self._mapped is None else self._mapped


class LentCopies:
    """Copies at one agent. Any thread.

    Args:
        agent: answers requests for their pieces from now on.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._numbers = count()
        self._copies: WeakValueDictionary[int, LentCopy] = WeakValueDictionary()
        agent.server.serve(Method.LEND, self._lend, quick=True)

    def add(self, key: LentKey, size: int) -> LentCopy:
        """Return a new copy of a buffer, still without pieces."""
        copy = LentCopy(key, next(self._numbers), size)
        self._copies[copy.number] = copy
        return copy

    def live(self, key: LentKey) -> list[int]:
        """Return the numbers of all copies of a buffer."""
        return [copy.number for copy in list(self._copies.values()) if copy.key == key]

    def _lend(self, call: ServerCall) -> None:
        number, piece = call.open()
        call.what = f"a read of piece {piece} of copy {number}"
        copy = self._copies.get(number)
        if copy is None or piece not in copy.arrived:
            raise RpcError(f"worker {self._agent.name!r} has no piece {piece} of copy {number}; ask the buffer's owner")
        call.reply(Tensor(copy.piece(piece)))


class CopyMessages:
    """Messages of the fetch of one copy (``FetchMessages``).

    Args:
        agent: sends them.
        copy: takes the pieces.
        live: returns the numbers of all copies of the buffer here.
        seconds: what the fetch may take; 0 for no limit.
        what: names the fetch in errors.
    """

    def __init__(self, agent: Agent, copy: LentCopy, live: Callable[[], list[int]], seconds: float, what: str) -> None:
        self._agent, self._copy, self._live, self._seconds, self._what = agent, copy, live, seconds, what
        self._ends = agent.timers.program.now() + seconds

    def ask(self, news: FetchNews) -> Future[Any]:
        """Ask the owner for sources."""
        copy, first = self._copy, news.first
        return self._ask(
            SourceAsk(
                copy.key[1],
                copy.number,
                live=self._live() if first else None,
                machine=machine_name() if first and maps_memory(self._agent.options.lanes) else b"",
                arrived=news.arrived,
                failed=news.failed,
                under_way=news.held,
                place=copy.memory.place() if news.whole else None,
                mapped=news.mapped,
            )
        )

    def map(self, place: BufferPlace) -> bool:
        """Map the whole copy of another worker; return False if that cannot be done here."""
        return self._copy.map(place)

    def leave(self) -> None:
        """Tell the owner, which is told surely, that the fetch has ended: its copy lends nothing."""
        owner, number = self._copy.key
        self._agent.control.post(self._agent.peers.at(owner), Topic.FETCH, LEFT.pack(number, self._copy.number))

    def read(self, piece: int, source: Holder) -> Future[Any]:
        """Ask a source for a piece: the owner for as long as the fetch may take, another for a short time."""
        room = self._copy.piece(piece)
        future = LandingFuture(room.data)
        worker, copy = source
        start = piece * fetch.FETCH_PIECE_BYTES
        begin, peer = self._agent.caller.begin, self._agent.peers.at(worker)
        if copy == ORIGINAL:
            body = (self._copy.key[1], start, start + room.size)
            return begin(peer, Method.READ, body, self._left(), self._what, future=future).future
        return begin(peer, Method.LEND, (copy, piece), self._soon(), self._what, future=future).future

    def accept(self, piece: int, answer: Any) -> None:
        """Take a piece, which may have been received in its place."""
        room = self._copy.piece(piece)
        if not np.may_share_memory(room, answer.numpy()):
            room[:] = answer.numpy()
        self._copy.arrived.add(piece)

    def withdraw(self, asked: Future[Any]) -> None:
        """Keep a piece that is still to come from being written."""
        if isinstance(asked, LandingFuture):
            asked.landing.withdraw()

    def late(self) -> BaseException | None:
        """Return the error of a fetch that has taken too long, if this one has."""
        if not self._seconds or self._agent.timers.program.now() < self._ends:
            return None
        return RpcTimeoutError(f"{self._what} took longer than {self._seconds:g} s; give it longer with timeout=")

    def _ask(self, ask: SourceAsk) -> Future[Any]:
        owner = self._agent.peers.at(self._copy.key[0])
        return self._agent.caller.request(owner, Method.SOURCES, tuple(ask), self._soon(), self._what)

    def _left(self) -> float:
        return max(self._ends - self._agent.timers.program.now(), 1e-3) if self._seconds else 0.0

    def _soon(self) -> float:
        return min(self._left() or fetch.SLOW_SECONDS, fetch.SLOW_SECONDS)


def lent_copies(agent: Agent) -> LentCopies:
    """Return the copies of an agent."""
    with _making:
        if not agent.has(LentCopies):
            agent.add_part(LentCopies(agent))
        return agent.part(LentCopies)


def fetch_copy(agent: Agent, key: LentKey, size: int, seconds: float, what: str) -> tuple[Fetch, LentCopy]:
    """Return the fetch of a buffer of another machine, not yet begun, and the copy that it fills.

    Args:
        agent: the reader.
        key: of the buffer.
        size: in bytes.
        seconds: what it may take; 0 for no limit.
        what: names it in errors.
    """
    copies = lent_copies(agent)
    copy = copies.add(key, size)
    messages = CopyMessages(agent, copy, partial(copies.live, key), seconds, what)
    return Fetch(-(-size // fetch.FETCH_PIECE_BYTES), messages), copy
