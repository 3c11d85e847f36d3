"""Outcome of each node's part of a job, and what follows for all. A pure state machine."""

from dataclasses import asdict, dataclass
from typing import Any

from ..restarts.history import WorkerFailure

VERDICT_SECONDS = 20.0  # after the first failure: time in which the other nodes end


@dataclass(frozen=True)
class Outcome:
    """End of one node's workers.

    Attributes:
        exit_code: of its launcher, if it were alone.
        cause: the worker that failed first there, in a few words; empty if none did.
        details: lines that tell more of it.
        lost: names of the workers whose loss it reports.
        gone: the launcher itself is gone, or was interrupted.
        failure: of a worker there, after which all workers are to be started again.
        again: they may be, as far as this node is concerned.
        absent: its launcher is gone without a word, and may come back.
    """

    exit_code: int
    cause: str = ""
    details: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    gone: bool = False
    failure: WorkerFailure | None = None
    again: bool = False
    absent: bool = False

    def as_message(self) -> dict[str, Any]:
        """Return its attributes, for JSON."""
        return asdict(self)

    @staticmethod
    def from_message(message: dict[str, Any]) -> "Outcome":
        """Return what ``as_message`` was made of."""
        told = message.get("failure")
        failure = WorkerFailure(**{**told, "lost": tuple(told["lost"])}) if told else None
        lists = {"details": tuple(message["details"]), "lost": tuple(message["lost"])}
        return Outcome(**{**message, **lists, "failure": failure})


@dataclass(frozen=True)
class Verdict:
    """Verdict about a job that has failed.

    Attributes:
        node: number of the node that failed first.
        outcome: how it ended.
        no_restart: why its workers are not started again, if the policies say that they are; else empty.
    """

    node: int
    outcome: Outcome
    no_restart: str = ""

    @staticmethod
    def from_message(message: dict[str, Any]) -> "Verdict":
        """Return the verdict that the host sent: the outcome's attributes, beside the others."""
        rest = {**message}
        node, no_restart = int(rest.pop("node")), str(rest.pop("no_restart"))
        return Verdict(node, Outcome.from_message(rest), no_restart)


class Outcomes:
    """Outcomes of a job's nodes so far.

    Args:
        workers: names of each node's workers, by node.
    """

    def __init__(self, workers: list[tuple[str, ...]]) -> None:
        self._nodes = {name: node for node, names in enumerate(workers) for name in names}
        self._count = len(workers)
        self._ended: dict[int, Outcome] = {}  # by node, in order

    def add(self, node: int, outcome: Outcome) -> None:
        """Record how a node ended; the first word counts."""
        self._ended.setdefault(node, outcome)

    @property
    def complete(self) -> bool:
        """Return whether all nodes have ended."""
        return len(self._ended) == self._count

    @property
    def failed(self) -> bool:
        """Return whether any of them has failed: the others are to end."""
        return any(outcome.exit_code for outcome in self._ended.values())

    @property
    def may_begin_again(self) -> bool:
        """Return whether no node that has ended forbids to start all workers again."""
        return all(outcome.again or outcome.absent for outcome in self._ended.values())

    @property
    def absent(self) -> list[int]:
        """Nodes that are gone without a word."""
        return [node for node, outcome in self._ended.items() if outcome.absent]

    def has(self, node: int) -> bool:
        """Return whether a node has ended."""
        return node in self._ended

    def verdict(self) -> tuple[int, Outcome] | None:
        """Return the node whose failure caused the others', and how it ended; None if none has failed."""
        failed = [node for node, outcome in self._ended.items() if outcome.exit_code]
        if not failed:
            return None
        told = [node for node in failed if self._ended[node].cause] or failed
        path = [told[0]]
        while (blamed := self._blamed(path[-1])) is not None and blamed not in path:
            path.append(blamed)
        return path[-1], self._ended[path[-1]]

    def _blamed(self, node: int) -> int | None:
        """Return the node of a worker whose loss made this node's worker fail, if that node failed too."""
        nodes = (self._nodes.get(name, node) for name in self._ended[node].lost)
        return next((other for other in nodes if other != node and self._failed_itself(other)), None)

    def _failed_itself(self, node: int) -> bool:
        outcome = self._ended.get(node)
        return outcome is not None and outcome.exit_code != 0 and bool(outcome.cause or outcome.gone)
