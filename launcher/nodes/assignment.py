"""Nodes of a job: who has joined, when the job can begin, and which ranks each gets. A pure state machine; time is given."""

import time
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import NodeError
from ..restarts.rules import NO_RESTARTS
from ..spec import numbered, parse_roles

LONGEST_SKEW_SECONDS = 55 * 60  # certificates are valid from an hour before they are made


@dataclass(frozen=True)
class NodeFacts:
    """Facts that a node tells when it joins.

    Attributes:
        host: where the others reach its workers.
        slots: how many workers it asks for; 0 if the roles say how many.
        rank: its ``--node-rank``; None takes the next.
        nodes: ``--nnodes``: the fewest and the most.
        roles: ``--roles``; None without.
        name: beginning of the workers' names.
        version: of telegrad and its protocol.
        restarts: ``--restart`` and its companions.
        clock: seconds since 1970, there.
        round: how often its job's workers had been started again when it lost the host; 0 if it comes for the first time.
    """

    host: str
    slots: int
    rank: int | None
    nodes: tuple[int, int]
    roles: str | None
    name: str
    version: str
    restarts: str = str(NO_RESTARTS)
    clock: float = field(default_factory=time.time)
    round: int = 0

    @staticmethod
    def from_message(message: dict[str, Any]) -> "NodeFacts":
        """Return the facts that a launcher told; what another version of telegrad tells beside them is left out.

        Raises:
            NodeError: some are missing.
        """
        try:
            known = {each.name: message[each.name] for each in fields(NodeFacts)}
            return NodeFacts(**{**known, "nodes": tuple(known["nodes"])})
        except (KeyError, TypeError) as error:
            raise NodeError("it is no launcher, or one of another version; install the same telegrad on all") from error


@dataclass(frozen=True)
class Placement:
    """Part of a job that one node runs.

    Attributes:
        node: number of the node.
        nodes: how many there are.
        workers: names of its workers, in order of rank.
        first_rank: rank of the first of them.
        world_size: number of workers of the whole job.
        master_host: where rank 0 listens.
        master_port: its port.
        host: where others reach the workers of this node.
        local_rank: number of the first of them among all workers of the job on its machine.
        local_size: how many those are; 0 if they are all this node's.
        round: how often all workers had been started again when this node came (back).
    """

    node: int
    nodes: int
    workers: tuple[str, ...]
    first_rank: int
    world_size: int
    master_host: str
    master_port: int
    host: str
    local_rank: int = 0
    local_size: int = 0
    round: int = 0

    def as_message(self) -> dict[str, Any]:
        """Return its attributes, for JSON."""
        return asdict(self)

    @staticmethod
    def from_message(message: dict[str, Any]) -> "Placement":
        """Return what ``as_message`` was made of."""
        return Placement(**{**message, "workers": tuple(message["workers"])})


class Assignment:
    """Nodes that have joined one job so far.

    Args:
        host: facts of node 0, with which those of the others must agree.
        join_seconds: time without a further node after which an elastic job begins with those that came.
    """

    def __init__(self, host: NodeFacts, join_seconds: float) -> None:
        self._host = host
        self._fewest, self._most = host.nodes
        self._join_seconds = join_seconds
        self._last = 0.0
        self.joined: list[NodeFacts] = []
        self.closed = False
        self.vacant: list[int] = []  # places of nodes that were lost, and may come back

    def join(self, node: NodeFacts, now: float) -> int:
        """Add a node and return its place in ``joined``; one that comes back gets the place that it had.

        Raises:
            NodeError: it contradicts the others, or comes too late.
        """
        place = self._vacated(node) if self.closed else None
        if problem := self._problem(node, place):
            raise NodeError(problem)
        self._last = now
        if place is None:
            self.joined.append(node)
            return len(self.joined) - 1
        self.vacant.remove(place)
        self.joined[place] = node
        return place

    def _vacated(self, node: NodeFacts) -> int | None:
        """Return the place of a lost node with this one's number and workers, preferably of the same machine."""
        alike = [place for place in self.vacant if self._is_alike(self.joined[place], node)]
        return min(alike, key=lambda place: self.joined[place].host != node.host, default=None)

    @staticmethod
    def _is_alike(lost: NodeFacts, node: NodeFacts) -> bool:
        return lost.slots == node.slots and node.rank in (None, lost.rank)

    def complete(self, now: float) -> bool:
        """Return whether the job can begin; from then on nobody can join."""
        count = len(self.joined)
        waited = count >= self._fewest and now >= self._last + self._join_seconds
        self.closed = self.closed or count == self._most or waited
        return self.closed

    def missing(self) -> str:
        """Return how many nodes came, in words."""
        ranks = {node.rank for node in self.joined}
        absent = [str(rank) for rank in range(self._most) if rank not in ranks]
        named = f"; --node-rank {', '.join(absent[:16])} did not" if None not in ranks and absent else ""
        return f"{len(self.joined)} of {self._fewest} nodes came{named}"

    def placements(self, master_host: str, master_port: int) -> list[Placement]:
        """Return the part of each node, in the order of ``joined``.

        Args:
            master_host: where rank 0 listens.
            master_port: its port.

        Raises:
            NodeError: there are fewer workers than nodes.
        """
        order = sorted(
            range(len(self.joined)), key=lambda i: (self.joined[i].rank is None, self.joined[i].rank or 0, i)
        )
        shares = self._shares([self.joined[i].slots for i in order])
        found: dict[int, Placement] = {}
        first = 0
        size = sum(map(len, shares))
        for number, (place, workers) in enumerate(zip(order, shares)):
            host = self.joined[place].host
            found[place] = Placement(number, len(order), workers, first, size, master_host, master_port, host)
            first += len(workers)
        return [found[place] for place in range(len(order))]

    def _shares(self, slots: list[int]) -> list[tuple[str, ...]]:
        """Return the names of each node's workers: ranks are blocks, so that neighbours in rank share a machine."""
        if self._host.roles is None:
            names, counts = numbered(self._host.name, sum(slots)), slots
        else:
            names = parse_roles(self._host.roles)
            each, more = divmod(len(names), len(slots))
            counts = [each + (number < more) for number in range(len(slots))]
            if each == 0:
                raise NodeError(f"--roles makes {len(names)} workers for {len(slots)} nodes; start fewer nodes")
        ends = [sum(counts[: number + 1]) for number in range(len(counts))]
        return [names[end - count : end] for end, count in zip(ends, counts)]

    def _problem(self, node: NodeFacts, vacated: int | None) -> str:
        if self.closed and vacated is None:
            return "the job has begun without this node; start it before --nnodes have come"
        if node.version != self._host.version:
            return f"this node has telegrad {node.version}, node 0 has {self._host.version}; install the same on all"
        if (skew := abs(node.clock - self._host_clock())) > LONGEST_SKEW_SECONDS:
            return f"the clocks of this node and of node 0 differ by {skew / 60:.0f} minutes; set them (`timedatectl`)"
        for option, own, other in (
            ("--nnodes", node.nodes, self._host.nodes),
            ("--roles", node.roles, self._host.roles),
            ("--name", node.name, self._host.name),
            ("--restart", node.restarts, self._host.restarts),
        ):
            if own != other:
                return (
                    f"this node was started with {option} {_shown(own)}, node 0 with {_shown(other)}; give all the same"
                )
        others = [other for place, other in enumerate(self.joined) if place != vacated]
        if node.rank is not None and any(node.rank == other.rank for other in others):
            return f"another node has --node-rank {node.rank}; give each its own, or leave it out"
        return ""

    @staticmethod
    def _host_clock() -> float:
        return time.time()


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        fewest, most = value
        return str(fewest) if fewest == most else f"{fewest}:{most}"
    return "(none)" if value is None else str(value)
