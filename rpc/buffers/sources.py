"""``Sources``: the owner's part in the fetches of one sealed buffer: it answers readers that ask where their pieces are."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from ...base.errors import RpcError
from .fetch_plan import FetchPlan, Holder
from .machine_readers import MachineReaders

if TYPE_CHECKING:
    from .memory import BufferPlace

MOST_LOOKED_AT = 64  # readers that wait, after each event
LEFT = struct.Struct("<QQ")  # number of a buffer, and of the copy of a reader that has ended
REMEMBERED_READERS = 4096  # of those that have ended
ASK_AT_ONCE = 4  # of them, those that get pieces: an event makes room for few


class SourceAsk(NamedTuple):
    """Request of a reader: what has happened to its pieces, and what it needs.

    Attributes:
        number: of the buffer.
        copy: number of the reader's copy.
        live: in its first request, and after one without an answer, the numbers of all copies of this buffer there.
        machine: then, the name of its machine; empty if it maps no copies of other workers there.
        arrived: pieces that it has got since it last asked.
        failed: pieces that it did not get.
        under_way: the pieces on their way to it, if it got no answer to its last request; else ``None``.
        place: of its copy, if that is whole.
        mapped: whether it could map the copy whose place it was told, if it was.
    """

    number: int
    copy: int
    live: list[int] | None = None
    machine: bytes = b""
    arrived: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    under_way: list[int] | None = None
    place: BufferPlace | None = None
    mapped: bool | None = None


class SourceCall(Protocol):
    """Call of a reader, which is answered now or later."""

    def reply(self, value: Any) -> object:
        """Answer it."""
        ...

    def fail(self, error: BaseException) -> None:
        """Answer it with an error."""
        ...


Found: TypeAlias = "list[tuple[int, Holder]] | BufferPlace"
Answers: TypeAlias = list[tuple[SourceCall, Found]]


class Sources:
    """Readers of one buffer, and their requests that wait for a source. Any thread.

    Args:
        count: pieces of the buffer.
        owner: the number of its owner.
    """

    def __init__(self, count: int, owner: int) -> None:
        self._plan = plan = FetchPlan(count, owner)
        self._machines = MachineReaders(plan)
        self._kept: dict[
            Holder, SourceCall
        ] = {}  # readers whose copies others are still to map: without an answer they keep it
        self._waiting: dict[Holder, tuple[SourceCall, bool]] = {}  # the call, and whether the reader is starved
        self._left: dict[Holder, None] = {}  # readers that have ended: a request of one may come later
        self._lock = threading.Lock()

    def asked(self, worker: int, ask: SourceAsk, call: SourceCall) -> None:
        """Answer a request when there is something to ask for; the reader's last one, which still waits, with nothing.

        Args:
            worker: the number of the reader's worker.
            ask: what it says.
            call: is answered with pieces and the holders that send them, or with the place of another worker's copy.

        Raises:
            RpcError: the reader has not begun, or was counted as lost.
        """
        reader = (worker, ask.copy)
        with self._lock:
            answers: Answers = []
            if (earlier := self._waiting.pop(reader, None)) is not None:
                answers.append((earlier[0], []))
            if not (over := reader in self._left):
                self._note(reader, ask)
            if over or ask.mapped:
                answers.append((call, []))
            elif not (waits := self._machines.waits(reader)) and not self._plan.knows(reader):
                raise RpcError(f"this fetch of buffer {ask.number} is over here: its worker was counted as lost")
            elif waits or not self._plan.complete(reader):
                self._waiting[reader] = call, ask.under_way is not None
            elif self._machines.needs(reader):
                self._kept.setdefault(reader, call)
                if self._kept[reader] is not call:
                    answers.append((call, []))
            else:
                answers.append((call, []))
            answers += self._ready(reader) + self._released()
        _send(answers)

    def left(self, reader: Holder) -> None:
        """Note that a reader has ended, and lends nothing."""
        with self._lock:
            self._left[reader] = None
            if len(self._left) > REMEMBERED_READERS:
                del self._left[next(iter(self._left))]
            self._plan.leave(reader)
            self._machines.leave(reader)
            waiting, kept = self._waiting.pop(reader, None), self._kept.pop(reader, None)
            answers: Answers = [(call, []) for call in (waiting and waiting[0], kept) if call is not None]
            answers += self._ready() + self._released()
        _send(answers)

    def lost(self, worker: int) -> None:
        """Note that a worker is lost."""
        with self._lock:
            self._plan.lost(worker)
            self._machines.lost(worker)
            for reader in [reader for reader in self._waiting if reader[0] == worker]:
                del self._waiting[reader]
            answers = self._ready() + self._released()
        _send(answers)

    def close(self, error: Callable[[], BaseException]) -> None:
        """Fail what waits: the buffer was freed."""
        with self._lock:
            waiting = [call for call, _ in self._waiting.values()] + list(self._kept.values())
            self._waiting, self._kept = {}, {}
        for call in waiting:
            call.fail(error())

    def _note(self, reader: Holder, ask: SourceAsk) -> None:
        plan, machines = self._plan, self._machines
        if ask.live is not None:
            plan.keep_only(reader[0], ask.live)
        if ask.mapped is False:
            machines.not_mapped(reader, ask.machine)
        elif ask.live is not None and not (plan.knows(reader) or machines.waits(reader)):
            machines.begin(reader, ask.machine)
        elif ask.mapped:
            machines.mapped(reader)
        for piece in ask.arrived:
            plan.arrived(reader, piece)
        for piece in ask.failed:
            plan.failed(reader, piece)
        if ask.place is not None:
            plan.whole(reader)
            machines.whole(reader, ask.place)
        if ask.under_way is not None:
            plan.only(reader, ask.under_way)
            if machines.waits(reader):
                machines.starved(reader)

    def _ready(self, *first: Holder) -> Answers:
        """Take out the requests that can be answered, and return them with their answers; look at some readers first."""
        ready: Answers = []
        for reader in dict.fromkeys((*first, *islice(self._waiting, MOST_LOOKED_AT))):
            if reader not in self._waiting:
                continue
            call, starved = self._waiting.pop(reader)
            if found := self._next(reader, starved):
                ready.append((call, found))
            else:
                self._waiting[reader] = call, starved  # behind the others
            if len(ready) == ASK_AT_ONCE:
                break
        return ready

    def _next(self, reader: Holder, starved: bool) -> Found | None:
        if self._machines.waits(reader) and (place := self._machines.place(reader)) is not None:
            return place
        return None if self._machines.waits(reader) else self._plan.next(reader, starved)

    def _released(self) -> Answers:
        """Take out the requests of readers whose copies have been mapped by all that waited, and answer them with nothing."""
        return [(self._kept.pop(reader), []) for reader in list(self._kept) if not self._machines.needs(reader)]


def _send(answers: Answers) -> None:
    for call, found in answers:
        call.reply(found)
