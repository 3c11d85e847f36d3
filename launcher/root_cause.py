"""Search for the worker whose failure caused the others', in a graph of "this worker failed because it lost that one".

Reports and exits are recorded in the order in which they happened, as far as a launcher can know it. The search begins at the
first worker that failed, and follows what each failure says of lost workers as long as those failed or ended early themselves.
A worker that reported nothing is outranked by a death by a signal shortly after its own exit (``SAME_TIME_SECONDS``).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

SAME_TIME_SECONDS = 1.0
"""Time within which a killed worker outranks one that exited before it. Workers that lose a killed one fail at nearly the same
time, and may be noticed first."""


@dataclass(frozen=True, slots=True)
class WorkerExit:
    """End of a worker's process.

    Args:
        rank: the worker's rank.
        code: the exit code, or minus the number of the signal that killed it.
        at: monotonic seconds.
        by_launcher: the launcher sent that signal.
        ran: seconds from its start.
    """

    rank: int
    code: int
    at: float
    by_launcher: bool
    ran: float = 0.0

    @property
    def failed(self) -> bool:
        """Return whether the worker failed by itself."""
        return self.code != 0 and not self.by_launcher

    @property
    def killed(self) -> bool:
        """Return whether a signal that the launcher did not send ended it."""
        return self.code < 0 and not self.by_launcher


@dataclass(slots=True)
class WorkerRecord:
    """Record of what is known of one worker.

    Args:
        rank: the worker's rank.
        jobs: how many it has joined and not left by ``rpc.shutdown``; that of a process group is one, too.
        ending: it reported, unasked, that its process ends while it is in the job; that may take it long.
        raised: it reported an exception that ends its program.
        lost: names of the workers whose loss caused that exception.
        error: last line of its traceback.
        exit: the end of its process.
        replaces: it has taken the place of one that failed: who lost that one does not blame this one.
        joined: it has joined a job.
        together: that job, or the one of the worker whose place this one took, begins and ends with all its workers.
        parted: it has left its last job by agreement with all others.
    """

    rank: int
    jobs: int = 0
    ending: bool = False
    raised: bool = False
    lost: tuple[str, ...] = ()
    error: str = ""
    exit: WorkerExit | None = None
    replaces: bool = False
    joined: bool = False
    together: bool = False
    parted: bool = False

    @property
    def failed(self) -> bool:
        """Return whether it failed by itself, as far as is known now."""
        if self.exit is None or self.exit.by_launcher:
            return self.raised
        return self.exit.code != 0

    @property
    def ended_early(self) -> bool:
        """Return whether it ended by itself without having called ``rpc.shutdown``."""
        return self.jobs > 0 and self.exit is not None and (self.ending or not self.exit.by_launcher)

    @property
    def may_be_cause(self) -> bool:
        """Return whether its failure may have caused others."""
        return (self.exit is None and not self.replaces) or self.failed or self.ended_early


@dataclass
class FailureGraph:
    """Graph of the workers of a job: how each ended, and whose loss it reports.

    Attributes:
        exits: ends of processes, in order.
        excused: ranks of workers that are started again if they fail; their failures are causes of others only.
    """

    exits: list[WorkerExit] = field(default_factory=list)
    excused: Collection[int] = frozenset()
    _workers: dict[int, WorkerRecord] = field(default_factory=dict)
    _ranks: dict[str, int] = field(default_factory=dict)  # by the name under which a worker joined
    _suspects: dict[int, None] = field(default_factory=dict)  # ranks in the order in which their end began

    def joined(self, rank: int, name: str, together: bool = False) -> None:
        """Record that a worker joined a job.

        Args:
            rank: the worker.
            name: the one under which it joined.
            together: the job's workers begin and end together.
        """
        self._ranks[name] = rank
        worker = self.worker(rank)
        worker.jobs += 1
        worker.joined, worker.together, worker.parted = True, together, False

    def left(self, rank: int, shut_down: bool, agreed: bool, asked: bool) -> None:
        """Record that a worker is about to leave: with ``rpc.shutdown``, and by agreement with all others.

        Args:
            rank: the worker.
            shut_down: its agent closes by ``rpc.shutdown``.
            agreed: all others agreed.
            asked: the launcher has asked it to end.
        """
        worker = self.worker(rank)
        worker.jobs -= shut_down
        worker.parted = agreed and worker.jobs == 0
        worker.ending = worker.ending or (not shut_down and not asked)
        if not agreed:
            self._suspect(rank)

    def raised(self, rank: int, lost: tuple[str, ...], error: str = "") -> None:
        """Record that an exception ends a worker's program.

        Args:
            rank: the worker.
            lost: names of the workers whose loss caused it.
            error: last line of its traceback.
        """
        worker = self.worker(rank)
        worker.raised, worker.lost, worker.error = True, lost, error
        self._suspect(rank)

    def replaced(self, rank: int) -> None:
        """Record that a worker that has ended is started again: what is known of the one before counts no more."""
        self._workers[rank] = WorkerRecord(rank, replaces=True, together=self.worker(rank).together)
        self._suspects.pop(rank, None)
        self.exits = [end for end in self.exits if end.rank != rank]

    def failed(self) -> list[WorkerRecord]:
        """Return the workers that have failed, in the order in which their end began."""
        return [worker for worker in self._in_order() if worker.failed]

    def exited(self, end: WorkerExit) -> None:
        """Record that a worker's process ended."""
        self.exits.append(end)
        self.worker(end.rank).exit = end
        if self.worker(end.rank).failed:
            self._suspect(end.rank)

    def has_failure(self) -> bool:
        """Return whether any worker has failed that is not to be started again."""
        return self._first() is not None

    def settled(self) -> bool:
        """Return whether the worker to which the first failure leads has ended."""
        first = self._first()
        return first is not None and self._path(first)[-1].exit is not None

    def root_cause(self) -> WorkerExit | None:
        """Return the end of the worker that caused the first failure, if there is one."""
        first = self._first()
        if first is None:
            return None
        ended = [worker.exit for worker in self._path(first) if worker.exit and (worker.failed or worker.ended_early)]
        return ended[-1] if ended else None

    def lost_by(self, rank: int) -> list[int]:
        """Return the ranks of the workers of this job whose loss made this one fail."""
        return [self._ranks[name] for name in self.worker(rank).lost if name in self._ranks]

    def launched_name(self, joined: str, workers: Sequence[str]) -> str:
        """Return the launcher's name of a worker; of one that it did not start, the one under which it joined.

        Args:
            joined: the name under which it joined.
            workers: the launcher's names, in order of rank.
        """
        return workers[self._ranks[joined]] if joined in self._ranks else joined

    def worker(self, rank: int) -> WorkerRecord:
        """Return the record of a worker."""
        return self._workers.setdefault(rank, WorkerRecord(rank))

    def _suspect(self, rank: int) -> None:
        self._suspects.setdefault(rank)

    def _first(self) -> WorkerRecord | None:
        """Return the worker that failed first; if it reported nothing, one that was killed at the same time."""
        first = next((worker for worker in self.failed() if worker.rank not in self.excused), None)
        if first is None or first.raised or first.exit is None or first.exit.killed:
            return first
        since = first.exit.at
        killed = (end for end in self.exits if end.killed and abs(end.at - since) <= SAME_TIME_SECONDS)
        return self.worker(next(killed, first.exit).rank)

    def _in_order(self) -> Iterator[WorkerRecord]:
        return (self._workers[rank] for rank in self._suspects)

    def _path(self, worker: WorkerRecord) -> list[WorkerRecord]:
        """Return the workers from this one to the cause, each lost by the one before; no worker twice."""
        path = [worker]
        while True:
            lost = [self.worker(rank) for rank in self.lost_by(path[-1].rank)]
            next_ones = [each for each in lost if each not in path and each.may_be_cause]
            if not next_ones:
                return path
            path.append(min(next_ones, key=lambda each: (not each.failed, not each.ended_early)))
