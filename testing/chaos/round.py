"""Round of a chaos job: start it, apply faults one after another, wait until it has healed after each, end it, check it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...launcher.engines import job_processes
from ...launcher.environment import helpful_defaults, job_environment, job_mark, reserve_port
from .checks import Excuses, Violation, check_calls, check_growth, check_remains
from .faults import Fate, Fault, Pace, Target
from .journal import read_journals
from .processes import WorkerProcess
from .relay import Link, Relay, Relays
from .worker import SETTLE_SECONDS, Config

START_SECONDS = 120.0
CALM_SECONDS = 0.5
MEASURE_SECONDS = 0.5
VIEW_SECONDS = 0.1
LEAVE_SECONDS = 60.0


@dataclass
class Hit:
    """Fault that was applied, and its outcome."""

    fault: str
    victim: int
    noticed: float | None = None  # seconds until all survivors agreed that the victim is lost
    violations: list[Violation] = field(default_factory=list)


@dataclass
class Result:
    """Result of a round."""

    hits: list[Hit] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    attempts: Counter[str] = field(default_factory=Counter)  # by outcome
    ran: int = 0
    peak_bytes: int = 0

    def all_violations(self) -> list[Violation]:
        """Return the violations of each fault and of the whole round."""
        return [violation for hit in self.hits for violation in hit.violations] + self.violations


class BrokenJobError(Exception):
    """The job is not as it must be after a fault; the round cannot go on."""


class Round:
    """Job and the faults that are applied to it; it is the ``Scene`` of the faults.

    Args:
        folder: an empty folder for journals, logs and temporary files.
        count: how many workers.
        seed: chooses victims and workloads.
        pace: time-outs and durations.
        activities: what the workers do (``workload.find_activity``).
    """

    def __init__(self, folder: Path, count: int, seed: int, pace: Pace, activities: Sequence[str]) -> None:
        self.folder = folder
        self.pace = pace
        self.random = random.Random(seed)
        self.workers: list[WorkerProcess] = []
        self.result = Result()
        self._count = count
        self._seed = seed
        self._activities = list(activities)
        self._lost: set[int] = set()
        self._excuses = Excuses()
        self._orphans: set[int] = set()  # children that workers forked on command
        self._left: dict[int, str] = {}  # processes that outlived their workers, and their commands
        self._job = secrets.token_hex(8)
        self._relays: Relays

    # -- what faults use

    def between(self, victim: int, others: Sequence[int]) -> list[Relay]:
        """Return the relays of all links between the victim and the others."""
        return self.on([link for other in others for link in ((victim, other), (other, victim))])

    def on(self, links: Sequence[Link]) -> list[Relay]:
        """Return the relays of directed links."""
        return self._relays.on(links)

    async def trouble(self, victim: int, kind: str, seconds: float) -> dict[str, Any] | None:
        """Have the victim make trouble for itself."""
        answer = await self.workers[victim].ask("trouble", seconds + self.pace.slack, kind=kind, seconds=seconds)
        if answer is not None and "child" in answer:
            self._orphans.add(answer["child"])
        for way, codes in (answer or {}).get("codes", {}).items():
            if bad := [code for code in codes if code]:
                self._violate("child", f"{len(bad)} of {len(codes)} children of {way} ended with {sorted(set(bad))}")
        return answer

    # -- the round

    async def run(self, faults: Sequence[Fault]) -> Result:
        """Play the round; afterwards nothing of it is running."""
        temporary = self.folder / "tmp"
        temporary.mkdir()
        async with self._job_running(temporary):
            try:
                descriptors = [worker.count_descriptors() for worker in self.workers]
                started = await self._everyone("work", self.pace.slack)
                before = [(answer["bytes"], number) for answer, number in zip(started, descriptors)]
                for each in faults:
                    await self._hit(each)
                await self._end(before)
            except BrokenJobError as problem:
                self._violate("broken", str(problem))
        self._check_records(temporary)
        return self.result

    @contextlib.asynccontextmanager
    async def _job_running(self, temporary: Path) -> AsyncIterator[None]:
        with contextlib.ExitStack() as sockets:
            reserved = [sockets.enter_context(contextlib.closing(reserve_port())) for _ in range(self._count)]
            ports = [each.getsockname()[1] for each in reserved]
            async with Relays(ports) as self._relays:
                measuring = asyncio.ensure_future(self._measure())
                try:
                    await self._start(ports, temporary)
                    yield
                finally:
                    measuring.cancel()
                    await asyncio.gather(*(worker.kill() for worker in self.workers))
                    self._end_children()

    async def _start(self, ports: list[int], temporary: Path) -> None:
        environment = {
            **helpful_defaults(self._count),
            **os.environ,
            **job_environment(self._count, ports[0]),
            **job_mark(self._job),
            "TMPDIR": str(temporary),
        }
        for rank, port in enumerate(ports):
            worker = WorkerProcess(self._config(rank, port))
            await worker.start(environment)
            self.workers.append(worker)
        await self._everyone("view", START_SECONDS)

    def _config(self, rank: int, port: int) -> Config:
        relays = {other: self._relays.port(rank, other) for other in range(self._count) if other != rank}
        return Config(
            rank=rank,
            port=port,
            relays=relays,
            folder=str(self.folder),
            seed=self._seed * 1000 + rank,
            timeout=self.pace.timeout,
            keepalive=self.pace.keepalive,
            reconnect_timeout=self.pace.reconnect_timeout,
            activities=self._activities,
        )

    async def _measure(self) -> None:
        while True:
            for worker in self.workers:
                worker.measure()
                self.result.peak_bytes = max(self.result.peak_bytes, worker.peak_bytes)
            await asyncio.sleep(MEASURE_SECONDS)

    def _end_children(self) -> None:
        sessions = [worker.pid for worker in self.workers]
        found = set(job_processes.find(self._job, sessions)) - self._orphans
        self._left = {pid: _command(pid) for pid in found}
        job_processes.end(self._job, sessions)

    # -- one fault

    async def _hit(self, fault: Fault) -> None:
        live = self._live()
        victim, other = self.random.sample(live, 2)
        hit = Hit(fault.name, victim)
        self.result.hits.append(hit)
        if fault.freezes:
            self._excuses.late[victim] += int(self.pace.lasting)
        if fault.starves:
            self._excuses.starved.add(victim)
        if fault.fate is not Fate.STAYS:
            self._excuses.gone.add(victim)
        began = asyncio.get_running_loop().time()
        acting = asyncio.ensure_future(
            fault.action(self, Target(victim, other, tuple(rank for rank in live if rank != victim)))
        )
        if fault.fate is Fate.LOST:
            await self._agree(self._lost | {victim})
            hit.noticed = asyncio.get_running_loop().time() - began
        await acting
        await self._recover(fault, victim)

    async def _recover(self, fault: Fault, victim: int) -> None:
        """Check after the faults that all workers agree on who is lost, and that all others can be called."""
        await asyncio.sleep(CALM_SECONDS)
        lost = fault.fate is Fate.LOST or (fault.fate is Fate.EITHER and await self._is_out(victim))
        if lost:
            self._lost.add(victim)
            if not await self._closes(victim):
                self._violate("verdict", f"w{victim} is lost and does not know it")
        await self._agree(self._lost)
        await self._greet()

    async def _is_out(self, victim: int) -> bool:
        await self.workers[victim].ended(self.pace.brief)
        view = await self.workers[victim].ask("view", self.pace.slack)
        return view is None or bool(view["closed"])

    async def _closes(self, victim: int) -> bool:
        async def closed() -> bool:
            view = await self.workers[victim].ask("view", self.pace.slack)
            return view is None or bool(view["closed"])

        return await self._comes_true(closed)

    async def _agree(self, expected: set[int]) -> None:
        """Wait until every survivor counts exactly those as lost."""
        views: dict[int, Any] = {}

        async def agreed() -> bool:
            ranks = [rank for rank in self._live() if rank not in expected]
            answers = await asyncio.gather(*(self.workers[rank].ask("view", self.pace.slack) for rank in ranks))
            views.update(zip(ranks, answers))
            return all(view is not None and set(map(int, view["lost"])) == expected for view in views.values())

        if not await self._comes_true(agreed):
            views_text = "; ".join(f"w{rank}: {self._describe(rank, view)}" for rank, view in views.items())
            raise BrokenJobError(f"exactly {_names(expected) or 'none'} should be lost, but {views_text}")

    def _describe(self, rank: int, view: dict[str, Any] | None) -> str:
        if view is None:
            code = self.workers[rank].code
            return "does not answer" if code is None else f"ended with {code}"
        return f"closed ({view['closed']})" if view["closed"] else f"lost are {view['lost'] or 'none'}"

    async def _greet(self) -> None:
        answers = await asyncio.gather(
            *(self.workers[rank].ask("greet", 2 * self.pace.slack, seconds=self.pace.slack) for rank in self._live())
        )
        for rank, answer in zip(self._live(), answers):
            if answer is None or answer["silent"]:
                raise BrokenJobError(f"w{rank} cannot call the others again: {answer and answer['silent']}")

    async def _comes_true(self, condition: Any) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + self.pace.lasting + self.pace.slack
        while not (held := await condition()) and loop.time() < until:
            await asyncio.sleep(VIEW_SECONDS)
        return bool(held)

    # -- the end

    async def _end(self, before: list[tuple[int, int]]) -> None:
        resting = 4 * self.pace.timeout + self.pace.slack
        for rank, answer in zip(self._live(), await self._survivors("rest", 2 * resting, seconds=resting)):
            if answer is None or answer["busy"]:
                self.workers[rank].signal(signal.SIGABRT)  # its log gets every thread's stack
                self._violate("hang", f"w{rank} does not end its work: {answer and answer['busy']}")
        for rank, answer in zip(self._live(), await self._survivors("settle", SETTLE_SECONDS + self.pace.slack)):
            if answer is None or answer["held"]:
                self._violate("not empty", f"w{rank} still holds {answer and answer['held']}")
            if answer is not None:
                worker = self.workers[rank]
                after = answer["bytes"], worker.count_descriptors()
                self.result.violations += check_growth(f"w{rank}", before[rank], after, worker.peak_bytes)
        await asyncio.gather(*(worker.ask("leave", 0.1, seconds=LEAVE_SECONDS) for worker in self.workers))
        ended = await asyncio.gather(*(worker.ended(LEAVE_SECONDS + self.pace.slack) for worker in self.workers))
        for worker, has_ended in zip(self.workers, ended):
            self._check_exit(worker, has_ended)

    def _check_exit(self, worker: WorkerProcess, has_ended: bool) -> None:
        if not has_ended:
            worker.signal(signal.SIGABRT)
            self._violate("hang", f"w{worker.rank} does not end")
        elif worker.rank in self._lost and worker.code == 0:
            self._violate("exit code", f"w{worker.rank} is lost and ended with 0")
        elif worker.rank not in self._lost and worker.code != 0:
            self._violate("exit code", f"w{worker.rank} was never lost and ended with {worker.code}")

    def _check_records(self, temporary: Path) -> None:
        attempts, runs = read_journals(self.folder, self._count)
        self.result.attempts = Counter(f"{each.kind}: {each.outcome}" for each in attempts)
        self.result.ran = len(runs)
        if any(violation.kind == "broken" for violation in self.result.all_violations()):
            self._excuses.gone |= set(range(self._count))  # killed during their calls
        self.result.violations += check_calls(attempts, runs, self._excuses, self.pace.slack)
        shared_files = {name for worker in self.workers for name in worker.shared_files}
        self.result.violations += check_remains(self._left, temporary, shared_files)

    # -- helpers

    def _live(self) -> list[int]:
        return [worker.rank for worker in self.workers if worker.rank not in self._lost]

    async def _survivors(self, command: str, within: float, **arguments: Any) -> list[dict[str, Any] | None]:
        workers = [self.workers[rank] for rank in self._live()]
        return list(await asyncio.gather(*(worker.ask(command, within, **arguments) for worker in workers)))

    async def _everyone(self, command: str, within: float) -> list[dict[str, Any]]:
        answers = await self._survivors(command, within)
        if None in answers:
            raise BrokenJobError(f"w{answers.index(None)} did not start")
        return [answer for answer in answers if answer is not None]

    def _violate(self, kind: str, text: str) -> None:
        where = self.result.hits[-1].violations if self.result.hits else self.result.violations
        where.append(Violation(kind, text))


def _names(ranks: set[int]) -> str:
    return ", ".join(f"w{rank}" for rank in sorted(ranks))


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return "(ended meanwhile)"
