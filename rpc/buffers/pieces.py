"""Range of a buffer on its way between two machines: a few pieces at a time, each a request to the owner."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ...core.futures import Future, complete_once

RANGE_PIECE_BYTES = 16 << 20  # with smaller ones, threads wait more often for an interpreter that computes
SMALL_BYTES = 64 << 10  # a piece of more is sent by a thread that may wait for room
AT_A_TIME = 4  # while one is sent, the next ones are asked for

Ask: TypeAlias = Callable[[int, int], "Future[Any]"]
Accept: TypeAlias = Callable[[int, int, Any], object]
GiveUp: TypeAlias = Callable[["Future[Any]"], object]


class Pieces:
    """Moves a range of bytes. Its future completes when all pieces have arrived, or with the first error.

    Args:
        size: bytes of the range.
        ask: ``ask(start, end)`` sends the request for a piece; the future holds its answer.
        accept: ``accept(start, end, answer)`` uses the answer.
        give_up: ``give_up(future)`` is called with that of each piece that is under way, before an error ends it.
        run: calls a function that calls ``ask``, now or in another thread.
    """

    def __init__(
        self, size: int, ask: Ask, accept: Accept, give_up: GiveUp, run: Callable[[Callable[[], None]], object]
    ) -> None:
        self.over: Future[None] = Future()
        self._lock = threading.Lock()
        self._size = size
        self._ask = ask
        self._accept = accept
        self._give_up = give_up
        self._run = run
        self._under_way: dict[int, Future[Any]] = {}  # by the start of the piece
        self._failed = False
        self._asked = self._arrived = 0

    def begin(self) -> Future[None]:
        """Ask for the first pieces, and return the future."""
        if not self._size:
            complete_once(self.over)
        for _ in range(AT_A_TIME):
            self._next()
        return self.over

    def fail(self, error: BaseException) -> None:
        """End it with an error. Nothing is written to the caller's memory afterwards."""
        with self._lock:
            self._failed, under_way = True, list(self._under_way.values())
        for asked in under_way:
            self._give_up(asked)
        complete_once(self.over, error=error)

    def _next(self) -> None:
        with self._lock:
            start = self._asked
            self._asked = end = min(start + RANGE_PIECE_BYTES, self._size)
        if start < end:
            self._run(partial(self._send, start, end))

    def _send(self, start: int, end: int) -> None:
        if self.over.done():
            return
        try:
            asked = self._ask(start, end)
        except Exception as error:
            self.fail(error)
            return
        with self._lock:
            self._under_way[start] = asked
            failed = self._failed
        if failed:
            self._give_up(asked)
        asked.add_done_callback(partial(self._came, start, end))

    def _came(self, start: int, end: int, answer: Future[Any]) -> None:
        try:
            if self.over.done():
                return  # an error ended it, or its user gave up: the array is not to be written to any more
            self._accept(start, end, answer.value())
        except Exception as error:
            self.fail(error)
            return
        with self._lock:
            self._under_way.pop(start, None)
            self._arrived += end - start
            whole = self._arrived == self._size
        if whole:
            complete_once(self.over)
        else:
            self._next()
