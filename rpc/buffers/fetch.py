"""``Fetch``: all pieces of a sealed buffer on their way to one reader, from its owner and from others that have them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...base.errors import RpcTimeoutError
from ...core.futures import Future, attempt, complete_once
from .fetch_plan import ORIGINAL, Holder

FETCH_PIECE_BYTES = 8 << 20
SLOW_SECONDS = 4.5  # a source that takes longer for a piece is passed over


class FetchNews(NamedTuple):
    """News of a fetch, for the owner.

    Attributes:
        first: the owner may not know it: it begins, or an answer was lost.
        arrived, failed: pieces.
        held: pieces under way, after a request without an answer; else ``None``.
        whole: all pieces are here.
        mapped: whether the copy of another worker could be mapped, if that was tried.
    """

    first: bool = False
    arrived: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    held: list[int] | None = None
    whole: bool = False
    mapped: bool | None = None


class FetchMessages(Protocol):
    """Messages of one fetch."""

    def ask(self, news: FetchNews) -> Future[Any]:
        """Ask the owner for sources; the answer is a list of pieces and holders, or the place of a copy on this machine."""
        ...

    def map(self, place: Any) -> bool:
        """Map the whole copy of another worker; return False if that cannot be done here."""
        ...

    def read(self, piece: int, source: Holder) -> Future[Any]:
        """Ask a source for a piece."""
        ...

    def accept(self, piece: int, answer: Any) -> None:
        """Take a piece that has come."""
        ...

    def withdraw(self, asked: Future[Any]) -> None:
        """Keep a piece that is still to come from being written."""
        ...

    def leave(self) -> None:
        """Tell the owner, which is told surely, that the fetch has ended: its copy lends nothing."""
        ...

    def late(self) -> BaseException | None:
        """Return the error of a fetch that has taken too long, if this one has."""
        ...


class Fetch:
    """Fetch of one buffer. Its future completes when all pieces are here, or with the first error that ends it. Any thread.

    Args:
        count: number of pieces.
        messages: sends and takes them.
    """

    def __init__(self, count: int, messages: FetchMessages) -> None:
        self.over: Future[None] = Future()
        self._messages = messages
        self._needed = set(range(count))
        self._under_way: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._asks = 0  # without an answer yet

    def begin(self) -> Future[None]:
        """Ask for the first pieces, and return the future."""
        if self._needed:
            self._ask(FetchNews(first=True))
        else:
            complete_once(self.over)
        return self.over

    def fail(self, error: BaseException) -> None:
        """End it with an error."""
        if self.over.done():
            return
        with self._lock:
            under_way = list(self._under_way.values())
        for asked in under_way:
            self._messages.withdraw(asked)
        complete_once(self.over, error=error)
        attempt(self._messages.leave)

    def _ask(self, news: FetchNews) -> None:
        with self._lock:
            self._asks += 1
        self._guarded(lambda: self._messages.ask(news).add_done_callback(self._told))

    def _ask_again(self) -> None:
        with self._lock:
            held = list(self._under_way)
        self._ask(FetchNews(first=True, held=held))

    def _told(self, answer: Future[Any]) -> None:
        """Read the pieces that the owner has named; ask again if no request is under way, which may overtake each other."""
        with self._lock:
            self._asks -= 1
            last = not self._asks
        error = answer.exception()
        if self.over.done():
            if error is not None or answer.value():  # the owner may not know that all pieces are here
                attempt(self._messages.leave)
            return
        if error is None:
            self._guarded(partial(self._use_sources, answer.value()))
            if self._stands_still():  # the owner has answered a request that was given up, and this one with nothing
                self._ask_again()
        elif not isinstance(error, RpcTimeoutError):
            self.fail(error)
        elif (late := self._messages.late()) is not None:
            self.fail(late)
        elif last:
            self._ask_again()

    def _stands_still(self) -> bool:
        with self._lock:
            return not (self._asks or self._under_way or self.over.done())

    def _use_sources(self, found: Any) -> None:
        if isinstance(found, list):
            for piece, source in found:
                self._guarded(partial(self._read, piece, tuple(source)))
            return
        mapped = self._messages.map(found)
        if mapped:
            complete_once(self.over)
        self._ask(FetchNews(first=not mapped, mapped=mapped))

    def _read(self, piece: int, source: Holder) -> None:
        asked = self._messages.read(piece, source)
        with self._lock:
            self._under_way[piece] = asked
        asked.add_done_callback(partial(self._came, piece, source))

    def _came(self, piece: int, source: Holder, answer: Future[Any]) -> None:
        with self._lock:
            if self._under_way.get(piece) is answer:
                del self._under_way[piece]
        if self.over.done():
            return
        error = answer.exception()
        if error is None:
            self._guarded(partial(self._use, piece, answer))
            return
        self._messages.withdraw(answer)
        if source[1] == ORIGINAL:
            self.fail(self._messages.late() or error)
        else:
            self._ask(FetchNews(failed=(piece,)))

    def _use(self, piece: int, answer: Future[Any]) -> None:
        self._messages.accept(piece, answer.value())
        with self._lock:
            self._needed.discard(piece)
            whole = not self._needed
        if whole:
            complete_once(self.over)
        self._ask(FetchNews(arrived=(piece,), whole=whole))  # also of the last: it can be lent

    def _guarded(self, step: Callable[[], object]) -> None:
        try:
            step()
        except Exception as error:
            self.fail(error)
