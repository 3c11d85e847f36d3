"""Search for the worker that caused a job's failure: a graph of "this worker failed because it lost that one".

Events come in the order in which they happened, as far as a launcher can know it. The first worker that failed is where
the search begins; from there it follows what failures say of other workers, as far as those failed or ended early
themselves. Where a worker says nothing, a death by a signal shortly after outranks it (``SAME_INSTANT``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .death import Death

SAME_INSTANT = 1.0
"""Seconds. A worker that is killed takes others with it: they fail with errors of their own at nearly the same time,
and may be noticed first. So within this time a death by a signal that we did not send is the cause, not an error of
which nothing was reported."""


@dataclass(slots=True)
class _Worker:
    rank: int
    in_job: bool = False  # it joined, and has not called rpc.shutdown
    raised: bool = False  # it reported an exception that ends its program
    lost: tuple[str, ...] = ()  # names of the workers whose loss caused that
    death: Death | None = None

    @property
    def failed(self) -> bool:
        if self.death is None or self.death.ours:
            return self.raised
        return self.death.code != 0

    @property
    def ended_early(self) -> bool:
        return self.in_job and self.death is not None and not self.death.ours


@dataclass
class Blame:
    """Record of how the workers of a job ended, and of whose loss they report."""

    deaths: list[Death] = field(default_factory=list)
    _workers: dict[int, _Worker] = field(default_factory=dict)
    _ranks: dict[str, int] = field(default_factory=dict)  # by the name under which a worker joined
    _suspects: dict[int, None] = field(default_factory=dict)  # ordered: those whose end began, the first first

    def joined(self, rank: int, name: str) -> None:
        """Record that a worker joined a job under this name."""
        self._ranks[name] = rank
        self._worker(rank).in_job = True

    def left(self, rank: int, shut_down: bool, agreed: bool) -> None:
        """Record that a worker is about to leave."""
        self._worker(rank).in_job = not shut_down
        if not agreed:
            self._suspect(rank)

    def failed(self, rank: int, lost: tuple[str, ...]) -> None:
        """Record that a worker's program raised an exception, because it lost the workers of these names."""
        worker = self._worker(rank)
        worker.raised, worker.lost = True, lost
        self._suspect(rank)

    def died(self, death: Death) -> None:
        """Record that a worker's process ended."""
        self.deaths.append(death)
        self._worker(death.rank).death = death
        if self._worker(death.rank).failed:
            self._suspect(death.rank)

    def failure(self) -> bool:
        """Return whether any worker has failed."""
        return self._first() is not None

    def settled(self) -> bool:
        """Return whether the worker to which the first failure leads has ended."""
        first = self._first()
        return first is not None and self._path(first)[-1].death is not None

    def cause(self) -> Death | None:
        """Return the end of the worker that caused the first failure, if there is one."""
        first = self._first()
        if first is None:
            return None
        ended = [worker.death for worker in self._path(first) if worker.death and (worker.failed or worker.ended_early)]
        return ended[-1] if ended else None

    def raised(self, rank: int) -> bool:
        """Return whether the worker reported an exception that ended its program."""
        return self._worker(rank).raised

    def lost_by(self, rank: int) -> list[int]:
        """Return the workers of this job whose loss made this one fail."""
        return [self._ranks[name] for name in self._worker(rank).lost if name in self._ranks]

    def ended_early(self, rank: int) -> bool:
        """Return whether the worker ended by itself without having called ``rpc.shutdown``."""
        return self._worker(rank).ended_early

    def _worker(self, rank: int) -> _Worker:
        return self._workers.setdefault(rank, _Worker(rank))

    def _suspect(self, rank: int) -> None:
        self._suspects.setdefault(rank)

    def _first(self) -> _Worker | None:
        first = next((worker for worker in self._in_order() if worker.failed), None)
        if first is None or first.raised or first.death is None:
            return first
        since = first.death.at
        killed = (death for death in self.deaths if death.by_foreign_signal and death.at - since <= SAME_INSTANT)
        return self._worker(next(killed, first.death).rank)

    def _in_order(self) -> Iterator[_Worker]:
        return (self._workers[rank] for rank in self._suspects)

    def _path(self, worker: _Worker) -> list[_Worker]:
        """Return the workers from this one along what each says of others, without a circle."""
        path = [worker]
        while True:
            blamed = [self._worker(rank) for rank in self.lost_by(path[-1].rank)]
            known = [each for each in blamed if each not in path and _may_be_the_cause(each)]
            if not known:
                return path
            path.append(min(known, key=lambda each: (not each.failed, not each.ended_early)))


def _may_be_the_cause(worker: _Worker) -> bool:
    return worker.death is None or worker.failed or worker.ended_early
