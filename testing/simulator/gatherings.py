"""Gatherings of a simulated workload: fixed groups of workers exchange objects, again and again."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError, RpcTimeoutError
from ...rpc.extend import call_function
from ...rpc.group.gathering import Gathering, _offer, _withdraw

if TYPE_CHECKING:
    from .mixed import Mixed
    from .worker import Worker

GROUP = 3
SECONDS = 4.0


async def gather(worker: Worker, number: int) -> None:
    """Gather objects in the group; all its members receive the same ones."""
    agent = worker.agent
    first, places = agent.rank - agent.rank % GROUP, worker.simulation.places
    group = tuple(sorted(f"w{rank}" for rank in range(first, min(first + GROUP, places))))
    ticket = agent.part(Gathering).ticket(group)
    try:
        offered = (group, agent.name, ticket, (agent.name, number), SECONDS)
        objects = await call_function(agent, group[0], _offer, offered, None, SECONDS)
    except RpcTimeoutError:
        with contextlib.suppress(RpcError):
            await call_function(agent, group[0], _withdraw, (group, agent.name, ticket), None, SECONDS)
        raise
    worker.simulation.workload.counts["gathered"] += 1
    _compare(worker, group, number, objects)


def _compare(worker: Worker, group: tuple[str, ...], number: int, objects: dict[str, Any]) -> None:
    workload: Mixed = worker.simulation.workload  # type: ignore[assignment]
    if objects.get(worker.name) != (worker.name, number) or objects.keys() != set(group):
        worker.simulation.violation(f"{worker.name} gave object {number} and gathered {objects}")
    for given in objects.values():
        if workload.rounds.setdefault(given, objects) != objects:
            worker.simulation.violation(f"{worker.name} gathered {objects}, another worker {workload.rounds[given]}")
