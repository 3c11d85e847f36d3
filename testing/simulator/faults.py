"""Plan of faults, with their rates and durations, drawn for each seed, so that seeds differ in kind."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .events import State
from .network import Rates
from .restarts import LONGEST_RESTART_SECONDS

if TYPE_CHECKING:
    from .simulation import Simulation
    from .worker import Worker

KINDS = ("delay", "reorder", "repeat", "drop", "break", "cut", "split", "stop", "kill", "slow")
ON_FRAMES = KINDS[:4]
ALL_KINDS = (*KINDS, "leave")
LONGEST_SHUTDOWN_SECONDS = 0.2
CALM = 0.25  # how often a kind of fault is left out of a seed


@dataclass
class FaultPlan:
    """Faults of one run.

    Attributes:
        rates: probability for one frame: delay, reorder, repeat, drop.
        pauses: mean seconds between two faults of a kind: break, cut, split, stop, kill, slow; and leave, if workers come back.
        longest: seconds that a cut, a split, a stop or slowness lasts, at most.
        mortality: share of the workers that may be killed, at most.
    """

    rates: dict[str, float] = field(default_factory=dict)
    pauses: dict[str, float] = field(default_factory=dict)
    longest: float = 10.0
    mortality: float = 0.25

    @classmethod
    def drawn(cls, seed: int, longest: float) -> FaultPlan:
        """Return the plan of a seed: some kinds of faults are left out, others are rare or frequent."""
        rng = random.Random(f"{seed}/plan")
        kinds = [kind for kind in KINDS if rng.random() >= CALM]
        rates = {kind: 0.02 * rng.random() for kind in kinds if kind in ON_FRAMES}
        pauses = {kind: rng.uniform(2.0, 20.0) for kind in kinds if kind not in ON_FRAMES}
        if (draw := random.Random(f"{seed}/leaves")).random() >= CALM:
            pauses["leave"] = draw.uniform(5.0, 30.0)
        return cls(rates, pauses, longest)


class Faults:
    """Source of the faults of a plan."""

    def __init__(self, simulation: Simulation, plan: FaultPlan) -> None:
        self._simulation = simulation
        self._plan = plan
        self._rng = random.Random(f"{simulation.seed}/faults")
        self.counts: Counter[str] = simulation.network.counts

    def start(self) -> None:
        """Begin to make faults."""
        self._simulation.network.rates = Rates(**self._plan.rates)
        kinds: dict[str, Callable[[], bool]] = {
            "break": self._simulation.network.break_one,
            "cut": self._cut,
            "split": self._split,
            "stop": self._stop,
            "kill": self._kill,
            "slow": self._slow,
        }
        if self._simulation.restarts is not None:
            kinds["leave"] = self._leave
        for kind, happen in kinds.items():
            if kind in self._plan.pauses:
                self._next(kind, self._plan.pauses[kind], happen)

    def end(self) -> None:
        """End all faults: heal links, let stopped processes go on. Killed processes stay so."""
        self._simulation.queue.drop(ALL_KINDS)
        self._simulation.network.rates = Rates()
        self._simulation.network.heal_all()
        self._simulation.reach.look()
        for worker in self._simulation.workers:
            self._resume(worker)
            worker.scheduler.slow = False

    def _next(self, kind: str, pause: float, happen: Callable[[], bool]) -> None:
        def event() -> None:
            self.counts[kind] += happen()
            self._next(kind, pause, happen)

        self._simulation.queue.after(self._rng.expovariate(1.0 / pause), None, kind, event)

    def _later(self, kind: str, action: Callable[[], object]) -> None:
        # Uniform in the logarithm, because the time-outs that they meet have different orders of magnitude.
        seconds = self._plan.longest * 10.0 ** self._rng.uniform(-2.0, 0.0)
        self._simulation.queue.after(seconds, None, f"end-of-{kind}", action)

    def _one(self) -> Worker | None:
        living = [w for w in self._simulation.workers if w.alive and w.state is State.RUNNING]
        return self._rng.choice(living) if living else None

    def _cut(self) -> bool:
        return self._cut_links("cut", [tuple(self._rng.sample(range(len(self._simulation.workers)), 2))])

    def _split(self) -> bool:
        """Cut the workers into two groups."""
        ranks = range(len(self._simulation.workers))
        group = set(self._rng.sample(ranks, self._rng.randint(1, len(ranks) // 2)))
        return self._cut_links("split", [(one, other) for one in group for other in ranks if other not in group])

    def _cut_links(self, kind: str, links: Iterable[tuple[int, ...]]) -> bool:
        network = self._simulation.network
        free = [(one, other) for one, other in links if not network.is_cut(one, other)]
        for one, other in free:
            network.cut(one, other)
        self._later(kind, lambda: self._heal(free))
        self._simulation.reach.look()
        return bool(free)

    def _heal(self, links: Iterable[tuple[int, int]]) -> None:
        for one, other in links:
            self._simulation.network.heal(one, other)
        self._simulation.reach.look()

    def _stop(self) -> bool:
        worker = self._one()
        if worker is None:
            return False
        worker.state = State.STOPPED
        self._simulation.network.silence(worker)
        self._simulation.reach.look()
        self._later("stop", lambda: self._resume(worker))
        return True

    def _resume(self, worker: Worker) -> None:
        if worker.state is State.STOPPED:
            self._simulation.queue.resume(worker)
            self._simulation.reach.look()

    def _kill(self) -> bool:
        worker = self._one_that_may_go()
        if worker is None:
            return False
        worker.state = State.DEAD
        self._simulation.network.kill(worker)
        worker.end_threads()
        self._simulation.reach.look()
        if (restarts := self._simulation.restarts) is not None:
            restarts.begin(worker.place, self._rng.random() * LONGEST_RESTART_SECONDS)
        return True

    def _one_that_may_go(self) -> Worker | None:
        workers = self._simulation.workers
        gone = sum((each.leaves or each.state is State.DEAD) and not each.replaced for each in workers)
        return self._one() if gone + 1 <= self._plan.mortality * self._simulation.places else None

    def _leave(self) -> bool:
        """Let a worker leave the job; later another takes its place."""
        worker, restarts = self._one_that_may_go(), self._simulation.restarts
        if worker is None or restarts is None:
            return False
        restarts.leave(worker)
        return True

    def kill_soon(self) -> None:
        """Kill a worker during shutdown: before, while or after it is told to leave."""
        seconds = self._rng.random() * LONGEST_SHUTDOWN_SECONDS
        self._simulation.queue.after(seconds, None, "kill", lambda: self.counts.update(kill=self._kill()))

    def _slow(self) -> bool:
        worker = self._one()
        if worker is None:
            return False
        worker.scheduler.slow = True
        self._later("slow", lambda: setattr(worker.scheduler, "slow", False))
        return True
