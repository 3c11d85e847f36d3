"""``Replay``: one run of a worker's part of a captured step, and what the workers of that step tell one another about it.

The worker that makes a step begins a replay. A part that it calls may call other workers. Their parts belong to the same
replay: requests for them name the worker that has begun it, and its number there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.futures import Future
from .undoing import Undoing

if TYPE_CHECKING:
    from ...rpc.extend import Peer

Key = tuple[int, int]  # a worker's number and its incarnation
NO_NUMBERS = "-"  # no number in a text of numbers


class Owners(NamedTuple):
    """Optimizers of a step by the numbers of their workers.

    Attributes:
        numbers: of the optimizers.
        text: the same as a text, which travels with gradients.
    """

    numbers: Mapping[int, int]
    text: str

    @classmethod
    def of(cls, numbers: Mapping[int, int]) -> Owners:
        """Return those of a step.

        Args:
            numbers: of optimizers, by those of their workers.
        """
        return cls(numbers, ",".join(f"{worker}:{number}" for worker, number in numbers.items()) or NO_NUMBERS)

    @classmethod
    @lru_cache(256)
    def of_text(cls, text: str) -> Owners:
        """Return those of a text."""
        pairs = [each.split(":") for each in text.split(",") if each != NO_NUMBERS]
        return cls({int(worker): int(number) for worker, number in pairs}, text)


NO_OWNERS = Owners.of({})


class ReplayNews:
    """News of a replay: what workers have told of those that are called from them.

    Attributes:
        owners: the optimizers that step.
        failed: numbers of the workers whose optimizer's step has raised an error.
        reached: numbers of the workers that the parts of other workers have called.
    """

    __slots__ = ("failed", "owners", "reached")

    def __init__(self, owners: Owners) -> None:
        self.owners = owners
        self.failed: set[int] = set()
        self.reached: set[int] = set()

    def words(self) -> tuple[str, str]:
        """Return what an answer to gradients says."""
        # Copied: other threads may note more meanwhile.
        return as_text(self.failed and [*self.failed]), as_text(self.reached and [*self.reached])

    def note(self, worker: int, failed: str, reached: str) -> None:
        """Note what a worker's answer to gradients says.

        Args:
            worker: its number.
            failed, reached: its words.
        """
        self.reached.add(worker)
        self.failed.update(numbers_in(failed))
        self.reached.update(numbers_in(reached))


class Origin(NamedTuple):
    """Origin of a request of a replay.

    Attributes:
        root: the worker that has begun the replay.
        replay: number of the replay there.
        caller: the worker that calls.
        run: the caller's number of the run of its own part.
        path: numbers of the workers through which the calls have come, from the first one to the caller.
    """

    root: Key
    replay: int
    caller: Key
    run: int
    path: tuple[int, ...]

    @classmethod
    def of_words(cls, caller: Key, replay: int, more: list[int]) -> Origin:
        """Return the origin that a message names.

        Args:
            caller: the caller.
            replay: number of the replay.
            more: the words of ``Replay.words``.
        """
        if not more:
            return cls(caller, replay, caller, replay, (caller[0],))
        run, worker, incarnation, *path = more
        return cls((worker, incarnation), replay, caller, run, (*path, caller[0]))


class ServedPart(NamedTuple):
    """Call of a replay that this worker serves. What its function calls belongs to the same replay.

    Attributes:
        origin: of the call.
        oldest: the oldest replay of its root that is not over.
        alone: whether no other call of the replay can be refused after this one.
        news: of the replay.
        undoing: of the replay at this worker.
    """

    origin: Origin
    oldest: int
    alone: bool
    news: ReplayNews
    undoing: Undoing


served_call: ContextVar[ServedPart | None] = ContextVar("telegrad_served_call", default=None)


class Replay:
    """One run of a worker's part of a step.

    Args:
        number: of the replay, at the worker that has begun it.
        news: of the replay.
        words: that a request has beside the number: none if this worker has begun the replay.
        path: numbers of the workers through which calls have come here.
        oldest: the oldest replay that is not over, as a caller has told.
        alone: whether no other call of the replay can be refused after those of this part.

    Attributes:
        called: the workers that were called.
        open: answers that were not taken.
    """

    __slots__ = ("alone", "called", "news", "number", "oldest", "open", "path", "words")

    def __init__(
        self,
        number: int,
        news: ReplayNews,
        words: tuple[int, ...] = (),
        path: tuple[int, ...] = (),
        oldest: int = 0,
        alone: bool = True,
    ) -> None:
        self.number, self.news, self.words = number, news, words
        self.path, self.oldest, self.alone = path, oldest, alone
        self.called: list[Peer] = []
        self.open: list[Future[Any]] = []

    @classmethod
    def within(cls, served: ServedPart, run: int) -> Replay:
        """Return the run of a part for another worker.

        Args:
            served: the call.
            run: this worker's number of the run.
        """
        origin = served.origin
        words = run, *origin.root
        return cls(origin.replay, served.news, words, origin.path, served.oldest, served.alone)


class OwnReplay(Replay):
    """Replay that this worker has begun. The oldest that lives bounds what callees keep.

    Args:
        replays: numbers of the worker's replays that are not over.
        number: its number.
        news: of the replay.
    """

    __slots__ = ("_replays",)

    def __init__(self, replays: dict[int, None], number: int, news: ReplayNews) -> None:
        super().__init__(number, news)
        replays[number] = None
        self._replays = replays

    def __del__(self) -> None:
        self._replays.pop(self.number, None)


def numbers_in(text: str) -> list[int]:
    """Return the numbers in a text."""
    return [] if text == NO_NUMBERS else list(map(int, text.split(",")))


def as_text(numbers: Collection[int]) -> str:
    """Return numbers as a text."""
    return ",".join(map(str, numbers)) if numbers else NO_NUMBERS
