"""Reachability of workers, which decides whether a loss was justified.

Workers find out late that a link is silent, and late that it is not any more. So a link counts as *doubtful* while it is
silent for long enough to be reported, and for a while after; one that is silent when a worker comes, at once. A worker that
a path without doubtful links joined to the majority must not be lost. A member that has closed itself behind a doubtful
link still counts: it cannot tell. So does one that was killed, but it is on no path.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from .events import State

if TYPE_CHECKING:
    from .simulation import Simulation
    from .worker import Worker

LONG_SECONDS = 1.0  # a shorter silence never causes a loss
DOUBT_SECONDS = 6.0  # until every worker knows that a link is not silent any more


class Reach:
    """Links between the workers of a simulation, and since when each is silent."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._silent_since: dict[tuple[int, int], float] = {}
        self._doubtful_until: dict[tuple[int, int], float] = {}
        self._seen: set[tuple[int, int]] = set()
        for worker in simulation.workers:
            self.watch(worker)

    def look(self) -> None:
        """Update after a change of a link or a process."""
        now = self._simulation.queue.now
        for one, other in itertools.combinations(self._simulation.workers, 2):
            link = (one.rank, other.rank)
            running = one.state is other.state is State.RUNNING
            if not running or self._simulation.network.is_cut(*link):
                self._silent_since.setdefault(link, now if link in self._seen else -math.inf)
            elif now - self._silent_since.pop(link, now) >= LONG_SECONDS:
                self._doubtful_until[link] = now + DOUBT_SECONDS
            self._seen.add(link)

    def joined(self, worker: Worker) -> bool:
        """Return whether a path without doubtful links joins a worker to the majority."""
        piece, fresh = {worker}, [worker]
        others = [other for other in self._simulation.workers if other is not worker]
        open_ones = {other for other in others if not other.agent.closed and not other.replaced}
        living = {other for other in open_ones if other.state is not State.DEAD}
        while fresh:
            at = fresh.pop()
            found = [other for other in living - piece if not self._is_doubtful(at.rank, other.rank)]
            piece.update(found)
            fresh += found
        silent = [other for other in others if other.agent.closed and self._misses(worker, other)]
        return 2 * len(piece) > 1 + len(open_ones) + len(silent)

    def _misses(self, worker: Worker, other: Worker) -> bool:
        """Return whether a worker cannot know that another has closed itself."""
        return self._is_doubtful(worker.rank, other.rank) and not worker.has_lost(other)

    def _is_doubtful(self, one: int, other: int) -> bool:
        link, now = (min(one, other), max(one, other)), self._simulation.queue.now
        silent = now - self._silent_since.get(link, now) >= LONG_SECONDS
        return silent or now < self._doubtful_until.get(link, 0.0)

    def watch(self, judge: Worker) -> None:
        """Check each loss that a worker declares."""
        judge.agent.losses.on_lost.append(lambda peer: self._lost(judge, peer.number))
        judge.agent.on_expelled.append(lambda reason: self._lost(judge, judge.rank))

    def _lost(self, judge: Worker, rank: int) -> None:
        worker, lost = self._simulation.workers[rank], self._simulation.result.lost
        leaving = judge.agent.state.leaving or worker.agent.state.leaving or worker.leaves
        if judge.state is State.DEAD or leaving or worker.label in lost:
            return
        lost.append(worker.label)
        if worker.state is not State.DEAD and self.joined(worker):
            self._simulation.violation(f"{worker.name} was lost, says {judge.name}, though it could reach the majority")
