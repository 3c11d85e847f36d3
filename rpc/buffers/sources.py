"""``Sources``: the owner's part in the fetches of one sealed buffer: it answers readers that ask where their pieces are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeAlias

from ...core.errors import RpcError
from .fetch_plan import FetchPlan, Holder

MOST_LOOKED_AT = 64  # readers that wait, after each event
ASK_AT_ONCE = 4  # of them, those that get pieces: an event makes room for few


class SourceAsk(NamedTuple):
    """Request of a reader: what has happened to its pieces, and what it needs.

    Attributes:
        number: of the buffer.
        copy: number of the reader's copy.
        live: in its first request, the numbers of all copies of this buffer there; else ``None``.
        arrived: pieces that it has got since it last asked.
        failed: pieces that it did not get.
        under_way: the pieces on their way to it, if it got no answer to its last request; else ``None``.
        over: it has ended, without all pieces.
    """

    number: int
    copy: int
    live: list[int] | None = None
    arrived: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    under_way: list[int] | None = None
    over: bool = False


class SourceCall(Protocol):
    """Call of a reader, which is answered now or later."""

    def reply(self, value: Any) -> None:
        """Answer it."""
        ...

    def fail(self, error: BaseException) -> None:
        """Answer it with an error."""
        ...


Answers: TypeAlias = list[tuple[SourceCall, list[tuple[int, Holder]]]]


class Sources:
    """Readers of one buffer, and their requests that wait for a source. Any thread.

    Args:
        count: pieces of the buffer.
        owner: the number of its owner.
    """

    def __init__(self, count: int, owner: int) -> None:
        self._plan = FetchPlan(count, owner)
        self._waiting: dict[Holder, tuple[SourceCall, bool]] = {}  # the call, and whether the reader is starved
        self._lock = threading.Lock()

    def asked(self, worker: int, ask: SourceAsk, call: SourceCall) -> None:
        """Answer a request when there is something to ask for; the reader's last one, which still waits, with nothing.

        Args:
            worker: the number of the reader's worker.
            ask: what it says.
            call: is answered with pieces and the holders that send them.

        Raises:
            RpcError: the reader has not begun, or was counted as lost.
        """
        reader = (worker, ask.copy)
        with self._lock:
            answers: Answers = []
            if (earlier := self._waiting.pop(reader, None)) is not None:
                answers.append((earlier[0], []))
            self._note(reader, ask)
            if not ask.over and not self._plan.knows(reader):
                raise RpcError(f"this fetch of buffer {ask.number} is over here: its worker was counted as lost")
            if ask.over or self._plan.complete(reader):
                answers.append((call, []))
            else:
                self._waiting[reader] = call, ask.under_way is not None
            answers += self._ready(reader)
        _send(answers)

    def lost(self, worker: int) -> None:
        """Note that a worker is lost."""
        with self._lock:
            self._plan.lost(worker)
            for reader in [reader for reader in self._waiting if reader[0] == worker]:
                del self._waiting[reader]
            answers = self._ready()
        _send(answers)

    def close(self, error: Callable[[], BaseException]) -> None:
        """Fail what waits: the buffer was freed."""
        with self._lock:
            waiting, self._waiting = list(self._waiting.values()), {}
        for call, _ in waiting:
            call.fail(error())

    def _note(self, reader: Holder, ask: SourceAsk) -> None:
        plan = self._plan
        if ask.live is not None:
            plan.begin(reader, ask.live)
        for piece in ask.arrived:
            plan.arrived(reader, piece)
        for piece in ask.failed:
            plan.failed(reader, piece)
        if ask.under_way is not None:
            plan.only(reader, ask.under_way)
        if ask.over:
            plan.leave(reader)

    def _ready(self, *first: Holder) -> Answers:
        """Take out the requests that can be answered, and return them with their answers; look at some readers first."""
        ready: Answers = []
        for reader in dict.fromkeys((*first, *islice(self._waiting, MOST_LOOKED_AT))):
            if reader not in self._waiting:
                continue
            call, starved = self._waiting.pop(reader)
            if found := self._plan.next(reader, starved):
                ready.append((call, found))
            else:
                self._waiting[reader] = call, starved  # behind the others
            if len(ready) == ASK_AT_ONCE:
                break
        return ready


def _send(answers: Answers) -> None:
    for call, found in answers:
        call.reply(found)
