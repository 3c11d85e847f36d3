"""Gatherings of a simulated workload: fixed groups of workers exchange objects, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...rpc.group.gathering import OwnOffer, _offer

if TYPE_CHECKING:
    from .mixed import Mixed
    from .worker import Worker

GROUP = 4
SECONDS = 4.0
LARGE_OBJECT = bytes(100_000)  # with such ones the objects of a group go over a tree


async def gather(worker: Worker, number: int) -> None:
    """Gather objects in the group; all its members receive the same ones."""
    agent = worker.agent
    first, places = agent.rank - agent.rank % GROUP, worker.simulation.places
    group = tuple(sorted(f"w{rank}" for rank in range(first, min(first + GROUP, places))))
    given = agent.name, number, LARGE_OBJECT if number % 2 else b""
    found = await OwnOffer(agent, _offer, given, group, SECONDS).ended()
    worker.simulation.workload.counts["gathered"] += 1
    _compare(worker, group, number, {name: tuple(each[:2]) for name, each in found.items()})


def _compare(worker: Worker, group: tuple[str, ...], number: int, objects: dict[str, Any]) -> None:
    workload: Mixed = worker.simulation.workload  # type: ignore[assignment]
    if objects.get(worker.name) != (worker.name, number) or objects.keys() != set(group):
        worker.simulation.violation(f"{worker.name} gave object {number} and gathered {objects}")
    for given in objects.values():
        if workload.rounds.setdefault(given, objects) != objects:
            worker.simulation.violation(f"{worker.name} gathered {objects}, another worker {workload.rounds[given]}")
