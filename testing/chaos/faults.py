"""Faults: what each does to a worker or a link, and which outcome is allowed.

A fault hits a victim, and some hit the link to one other worker. ``Fate`` says whether the others must count the victim
as lost afterwards; every other worker must stay in the job.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from .processes import WorkerProcess
from .relay import Link, Relay

LONGEST_DELAY = 0.1


class Fate(Enum):
    """Outcome for a victim."""

    STAYS = "stays"
    LOST = "lost"
    EITHER = "either"


@dataclass(frozen=True)
class Pace:
    """Durations in a job, in seconds.

    Attributes:
        keepalive: as in ``GrpcRpcBackendOptions``.
        reconnect_timeout: as in ``GrpcRpcBackendOptions``.
        timeout: of every call.
        brief: of a fault for which no worker may be lost.
        lasting: of a fault that every worker must notice.
        slack: by how much anything may be late on a busy machine.
    """

    keepalive: float = 2.0
    reconnect_timeout: float = 4.0
    timeout: float = 8.0
    brief: float = 1.5
    lasting: float = 15.0
    slack: float = 30.0


class Scene(Protocol):
    """Job as its faults see it."""

    pace: Pace
    random: random.Random

    @property
    def workers(self) -> Sequence[WorkerProcess]:
        """Return the worker processes, by rank."""
        ...

    def between(self, victim: int, others: Sequence[int]) -> list[Relay]:
        """Return the relays of all links between the victim and the others, in both directions."""
        ...

    def on(self, links: Sequence[Link]) -> list[Relay]:
        """Return the relays of single directed links."""
        ...

    async def trouble(self, victim: int, kind: str, seconds: float) -> dict[str, Any] | None:
        """Have the victim make trouble for itself."""
        ...


@dataclass(frozen=True)
class Target:
    """Workers that a fault hits: its victim, one other worker, and all others that run."""

    victim: int
    other: int
    others: tuple[int, ...]


Action = Callable[[Scene, Target], Awaitable[Any]]


@dataclass(frozen=True)
class Fault:
    """Kind of fault. ``freezes``: its victim may be late by as long as the fault lasts. ``starves``: it may also fail
    because it lacks resources.
    """

    name: str
    fate: Fate
    summary: str
    action: Action
    freezes: bool = False
    starves: bool = False


FAULTS: dict[str, Fault] = {}


def fault(fate: Fate, freezes: bool = False, starves: bool = False) -> Callable[[Action], Action]:
    """Register a function as a fault; its docstring's first line is the summary."""

    def register(action: Action) -> Action:
        name = action.__name__.replace("_", "-")
        summary = (action.__doc__ or "").splitlines()[0].rstrip(".")
        FAULTS[name] = Fault(name, fate, summary, action, freezes, starves)
        return action

    return register


# -- links


async def _during(relays: Sequence[Relay], start: Callable[[Relay], None], seconds: float) -> None:
    for relay in relays:
        start(relay)
    try:
        await asyncio.sleep(seconds)
    finally:
        for relay in relays:
            relay.heal()


@fault(Fate.STAYS)
async def reset(scene: Scene, target: Target) -> None:
    """Break every session of a worker; the links work."""
    for relay in scene.between(target.victim, target.others):
        relay.reset()


@fault(Fate.STAYS)
async def delay(scene: Scene, target: Target) -> None:
    """Delay the links of a worker by up to 100 ms in each direction."""

    def slow(relay: Relay) -> None:
        relay.delay = scene.random.uniform(0, LONGEST_DELAY)

    await _during(scene.between(target.victim, target.others), slow, scene.pace.lasting)


@fault(Fate.STAYS)
async def cut(scene: Scene, target: Target) -> None:
    """Cut the link between two workers for long."""
    await _during(scene.between(target.victim, [target.other]), Relay.cut, scene.pace.lasting)


@fault(Fate.STAYS)
async def blackhole(scene: Scene, target: Target) -> None:
    """Drop everything between two workers for long."""
    await _during(scene.between(target.victim, [target.other]), Relay.silence, scene.pace.lasting)


@fault(Fate.STAYS)
async def one_way(scene: Scene, target: Target) -> None:
    """Drop everything on sessions that one worker dials to another, not the reverse."""
    await _during(scene.on([(target.victim, target.other)]), Relay.silence, scene.pace.lasting)


@fault(Fate.LOST)
async def isolate(scene: Scene, target: Target) -> None:
    """Drop everything between a worker and all others for long."""
    await _during(scene.between(target.victim, target.others), Relay.silence, scene.pace.lasting)


@fault(Fate.LOST)
async def disconnect(scene: Scene, target: Target) -> None:
    """Cut a worker off from all others for long."""
    await _during(scene.between(target.victim, target.others), Relay.cut, scene.pace.lasting)


# -- processes


async def _stop(scene: Scene, victim: int, seconds: float) -> None:
    scene.workers[victim].signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        scene.workers[victim].signal(signal.SIGCONT)


@fault(Fate.STAYS, freezes=True)
async def pause(scene: Scene, target: Target) -> None:
    """Stop a worker briefly (SIGSTOP, SIGCONT)."""
    await _stop(scene, target.victim, scene.pace.brief)


@fault(Fate.LOST, freezes=True)
async def stop(scene: Scene, target: Target) -> None:
    """Stop a worker for long (SIGSTOP, SIGCONT)."""
    await _stop(scene, target.victim, scene.pace.lasting)


@fault(Fate.LOST)
async def kill(scene: Scene, target: Target) -> None:
    """Kill a worker (SIGKILL)."""
    scene.workers[target.victim].signal(signal.SIGKILL)


@fault(Fate.LOST)
async def kill_parent(scene: Scene, target: Target) -> None:
    """Kill a worker that has a forked child."""
    await scene.trouble(target.victim, "leave_orphan", 0.0)
    scene.workers[target.victim].signal(signal.SIGKILL)


@fault(Fate.STAYS)
async def fork(scene: Scene, target: Target) -> None:
    """Fork children that do nothing."""
    await scene.trouble(target.victim, "fork_children", scene.pace.brief)


@fault(Fate.STAYS, freezes=True)
async def gil(scene: Scene, target: Target) -> None:
    """Hold a worker's GIL for long."""
    await scene.trouble(target.victim, "hold_gil", scene.pace.lasting)


@fault(Fate.STAYS, starves=True)
async def descriptors(scene: Scene, target: Target) -> None:
    """Take a worker's descriptors while its links break."""
    trouble = asyncio.ensure_future(scene.trouble(target.victim, "exhaust_descriptors", scene.pace.brief))
    await asyncio.sleep(scene.pace.brief / 3)
    await reset(scene, target)
    await trouble


@fault(Fate.EITHER, freezes=True, starves=True)
async def memory(scene: Scene, target: Target) -> None:
    """Let a worker have no more memory for a while."""
    await scene.trouble(target.victim, "exhaust_memory", scene.pace.brief)
