"""Rounds of a job on several nodes: the outcomes of one, and whether all workers are started again in another. Pure."""

from dataclasses import asdict, dataclass
from typing import Any

from ..restarts.history import RestartHistory, WorkerFailure
from ..restarts.rules import RestartRules
from ..restarts.words import past_line, restart_line
from .assignment import Placement
from .outcome import Outcomes


@dataclass(frozen=True)
class NextRound:
    """Word of the host that all workers are started again.

    Attributes:
        number: of the round, 1 for the first restart.
        delay: seconds until then.
        master_port: where rank 0 listens in it.
        line: what each node tells its user.
        past: what its summary says.
    """

    number: int
    delay: float
    master_port: int
    line: str
    past: str


class NodeRounds:
    """Rounds of one job.

    Args:
        placements: of the nodes, by the order of their coming.
        rules: of restarts.
        began: monotonic seconds at which the job began.

    Attributes:
        number: of the round that runs, 0 for the first.
        outcomes: of its nodes so far.
    """

    def __init__(self, placements: list[Placement], rules: RestartRules, began: float) -> None:
        self._placements = placements
        self._began = began
        self._workers = [name for each in sorted(placements, key=lambda each: each.first_rank) for name in each.workers]
        self._history = RestartHistory(rules, len(self._workers))
        self.number = 0
        self.outcomes = self._new_outcomes()

    def conclude(self, now: float) -> NextRound | dict[str, Any]:
        """Return what follows the round: a further one, without its port, or the verdict for all nodes.

        Args:
            now: monotonic seconds.
        """
        found = self.outcomes.verdict()
        if found is None:
            return {}
        place, outcome = found
        if self.outcomes.complete and self.outcomes.may_begin_again and outcome.failure is not None:
            first = self._placements[place].first_rank
            failure = WorkerFailure(**{**asdict(outcome.failure), "rank": first + outcome.failure.rank})
            if (further := self._begin_again(failure, now)) is not None:
                return further
        return {"node": self._placements[place].node, "no_restart": self._history.refusal, **outcome.as_message()}

    def _begin_again(self, failure: WorkerFailure, now: float) -> NextRound | None:
        restart = self._history.decide(failure, tuple(range(len(self._workers))), now)
        if restart is None:
            return None
        self.number += 1
        self.outcomes = self._new_outcomes()
        line = restart_line(restart, self._workers, self.number)
        return NextRound(self.number, restart.delay, 0, line, past_line(restart, self._workers, self._began))

    def _new_outcomes(self) -> Outcomes:
        return Outcomes([placement.workers for placement in self._placements])
