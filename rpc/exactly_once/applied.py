"""``AppliedCalls``: which calls of which streams a callee has applied. Pure: no I/O, no clock, no thread.

The calls of one stream are applied in the order of their numbers, so one number says which of them were. Between streams there
is no order. The state is a part of the callee's checkpoint; it must be taken while no call runs.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

LARGEST_RESULT = 4096  # bytes or characters of a result that is kept
MOST_RESULTS = 4096  # of one stream
STREAMS_KEPT = 8  # latest streams of one caller: each start of it without a checkpoint begins another
_PLAIN = (bool, int, float, complex)


class StreamKey(NamedTuple):
    """Stream of calls.

    Attributes:
        caller: name of the worker that makes the calls.
        origin: names of the workers whose exactly-once calls make it call, joined by ``>``; empty for calls of its own.
        token: names the stream that the first of these workers began.
    """

    caller: str
    origin: str
    token: str


class Turn(Enum):
    """Time at which a call that has arrived is to run."""

    NOW = "now"  # it is the next one of its stream
    LATER = "later"  # earlier ones are missing


class Repeated(NamedTuple):
    """Call that was applied before.

    Attributes:
        result: its result.
        problem: why there is no result, if there is none.
    """

    result: Any
    problem: str = ""


class MissingCalls(NamedTuple):
    """Calls that were in a checkpoint which was durable, and are not in the one that was restored.

    Attributes:
        first: number of the first one.
        end: one past the last.
    """

    first: int
    end: int


class _Stream:
    """Calls of one stream that were applied.

    Attributes:
        applied: how many.
        durable: how many of them a durable checkpoint has.
        results_from: results of calls below this number are not kept any more.
        results: by number; ``None`` is not kept, and one that is too large is a text in a list.
    """

    __slots__ = ("applied", "durable", "results", "results_from")

    def __init__(self) -> None:
        self.applied = self.durable = self.results_from = 0
        self.results: dict[int, Any] = {}

    def forget(self, end: int) -> None:
        """Drop the results of the calls below ``end``."""
        if end > self.results_from:
            self.results_from = end
            while self.results and (first := next(iter(self.results))) < end:
                del self.results[first]


class AppliedCalls:
    """Calls that a callee has applied, by stream.

    Attributes:
        total: how many, of all streams.
        durable: how many of them a durable checkpoint has.
    """

    def __init__(self) -> None:
        self.total = self.durable = 0
        self._streams: dict[StreamKey, _Stream] = {}  # the latest begun is the last

    def arrived(self, key: StreamKey, number: int, oldest: int, results_from: int) -> Turn | Repeated | MissingCalls:
        """Return what to do with a call.

        Args:
            key: its stream.
            number: its number there.
            oldest: number of the oldest call that its caller keeps.
            results_from: number below which the caller needs no result again.
        """
        stream = self._stream(key)
        if stream.applied < oldest:
            return MissingCalls(stream.applied, oldest)
        if number < stream.applied:
            return self._repeated(stream, number)
        stream.forget(min(results_from, stream.applied))
        return Turn.NOW if number == stream.applied else Turn.LATER

    def _repeated(self, stream: _Stream, number: int) -> Repeated:
        if number < stream.results_from:
            return Repeated(None, "its result is not kept any more")
        result = stream.results.get(number)
        return Repeated(None, result[0]) if isinstance(result, list) else Repeated(result)

    def add(self, key: StreamKey, number: int, result: Any, problem: str = "") -> None:
        """Note that the next call of a stream was applied.

        Args:
            key: its stream.
            number: its number.
            result: its result. ``None``, a number, or a text or bytes of at most 4,096 is kept.
            problem: the exception that it raised, as text; empty if it raised none.
        """
        stream = self._stream(key)
        if number != stream.applied:
            raise ValueError(f"call {number} of {key} was applied, and call {stream.applied} is the next one")
        stream.applied += 1
        self.total += 1
        if problem:
            stream.results[number] = [f"it raised {problem[:LARGEST_RESULT]}"]
        elif not _is_small(result):
            stream.results[number] = [f"its result, a {type(result).__name__}, was not kept"]
        elif result is not None:
            stream.results[number] = result
        if len(stream.results) > MOST_RESULTS:
            stream.forget(next(iter(stream.results)) + 1)

    def progress(self, key: StreamKey) -> tuple[int, int]:
        """Return how many calls of a stream were applied, and how many of them a durable checkpoint has."""
        stream = self._streams.get(key)
        return (stream.applied, stream.durable) if stream else (0, 0)

    def _stream(self, key: StreamKey) -> _Stream:
        stream = self._streams.get(key)
        if stream is None:
            alike = [each for each in self._streams if (each.caller, each.origin) == (key.caller, key.origin)]
            for each in alike[: max(len(alike) + 1 - STREAMS_KEPT, 0)]:
                del self._streams[each]
            stream = self._streams[key] = _Stream()
        return stream

    # -- checkpoints

    def state(self) -> dict[str, Any]:
        """Return the state, for a checkpoint."""
        streams = [
            (*key, stream.applied, stream.results_from, list(stream.results.items()))
            for key, stream in self._streams.items()
        ]
        return {"total": self.total, "streams": streams}

    def saved(self, state: dict[str, Any]) -> list[tuple[StreamKey, int]]:
        """Note that a checkpoint with this state is durable; return the streams of which it has more calls than before."""
        news = []
        self.durable = state["total"]
        for caller, origin, token, applied, *_ in state["streams"]:
            key = StreamKey(caller, origin, token)
            stream = self._streams.get(key)
            if stream is not None and stream.durable < applied:
                stream.durable = applied
                news.append((key, applied))
        return news

    def load(self, state: dict[str, Any]) -> None:
        """Go back to a state, which a durable checkpoint has."""
        self._streams = {}
        self.total = self.durable = state["total"]
        for caller, origin, token, applied, results_from, results in state["streams"]:
            stream = self._streams[StreamKey(caller, origin, token)] = _Stream()
            stream.applied = stream.durable = applied
            stream.results_from = results_from
            stream.results = dict(results)


def _is_small(result: Any) -> bool:
    return result is None or type(result) in _PLAIN or (type(result) in (str, bytes) and len(result) <= LARGEST_RESULT)
