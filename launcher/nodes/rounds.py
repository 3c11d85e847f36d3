"""Rounds of a job on several nodes: the outcomes of one, and whether all workers are started again in another. Pure."""

from dataclasses import asdict, dataclass
from typing import Any

from ..restarts.history import RestartHistory, WorkerFailure
from ..restarts.rules import RestartPolicy, RestartRules
from ..restarts.words import past_line, restart_line
from ..spec import role_of
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
        number: of the first round; 0 unless nodes have lost their host, and come to another one.

    Attributes:
        number: of the round that runs, 0 for the first.
        outcomes: of its nodes so far.
    """

    def __init__(self, placements: list[Placement], rules: RestartRules, began: float, number: int = 0) -> None:
        self._placements = placements
        self._rules = rules
        self._began = began
        self._workers = [name for each in sorted(placements, key=lambda each: each.first_rank) for name in each.workers]
        self._history = RestartHistory(rules, len(self._workers))
        for _ in range(number):
            self._history.begin_round()
        self.number = number
        self.outcomes = self._new_outcomes()

    def may_come_back(self, place: int) -> bool:
        """Return whether a node that is gone may come back: all workers are started again after its loss."""
        return self._rules.of(role_of(self._placements[place].workers[0])) is RestartPolicy.ALL

    @property
    def awaits(self) -> bool:
        """Return whether the round is over but for nodes that may come back."""
        outcomes = self.outcomes
        absent = outcomes.absent
        return outcomes.complete and outcomes.may_begin_again and bool(absent) and all(map(self.may_come_back, absent))

    def conclude(self, now: float, manned: bool = True) -> NextRound | dict[str, Any]:
        """Return what follows the round: a further one, without its port, or the verdict for all nodes.

        Args:
            now: monotonic seconds.
            manned: each node is there, or has come back.
        """
        found = self.outcomes.verdict()
        if found is None:
            return {}
        place, outcome = found
        comes_back = outcome.absent and self.may_come_back(place)
        failure = WorkerFailure(0, outcome.exit_code) if comes_back else outcome.failure
        if manned and self.outcomes.complete and self.outcomes.may_begin_again and failure is not None:
            first = self._placements[place].first_rank
            failure = WorkerFailure(**{**asdict(failure), "rank": first + failure.rank})
            if (further := self._begin_again(failure, outcome.cause if outcome.absent else "", now)) is not None:
                return further
        return {"node": self._placements[place].node, "no_restart": self._history.refusal, **outcome.as_message()}

    def _begin_again(self, failure: WorkerFailure, reason: str, now: float) -> NextRound | None:
        restart = self._history.restart_all(failure, now)
        if restart is None:
            return None
        self.number = self._history.rounds
        self.outcomes = self._new_outcomes()
        line = restart_line(restart, self._workers, reason)
        return NextRound(self.number, restart.delay, 0, line, past_line(restart, self._workers, self._began, reason))

    def _new_outcomes(self) -> Outcomes:
        return Outcomes([placement.workers for placement in self._placements])
