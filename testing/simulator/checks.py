"""Checks of the agents for any workload: references are right, tables are empty, verdicts agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...rpc.group.gathering import Gathering
from ...rref.extend import RRefContext
from ...rref.forks import Fork, State

if TYPE_CHECKING:
    from .simulation import Simulation
    from .worker import Worker


def audit(simulation: Simulation) -> Iterator[str]:
    """Check G2, at any time: a reference that its user knows to be confirmed is in its owner's table, and has a value."""
    for worker in simulation.living():
        for fork_id, fork in worker.agent.part(RRefContext).ownership.forks.items():
            owner = simulation.workers[fork.owner.number]
            if fork.state is State.CONFIRMED and owner.alive and not _estranged(worker, owner):
                yield from _check_fork(worker, owner, fork_id, fork)


def _check_fork(worker: Worker, owner: Worker, fork_id: Any, fork: Fork) -> Iterator[str]:
    ownership = owner.agent.part(RRefContext).ownership
    if not ownership.owned.is_created(fork.rref_id):
        yield f"G2: {owner.name} freed the value of RRef {fork.rref_id}, which {worker.name} holds"
    elif fork_id not in ownership.owned.forks_of(fork.rref_id):
        yield f"G2: {owner.name} does not know fork {fork_id} of RRef {fork.rref_id}, which {worker.name} holds"


def _estranged(one: Worker, other: Worker) -> bool:
    return one.has_lost(other) or other.has_lost(one)


def tables(worker: Worker) -> dict[str, int]:
    """Return the tables of a worker that are not empty."""
    info = worker.agent.debug_info()
    held = {key: info[key] for key in ("pending_calls", "serving", "control_unacknowledged", "contexts", "generators")}
    held.update(info["references"])
    held["not started"] = len(worker.agent.server.waiting)
    held["gathered"] = sum(map(bool, worker.agent.part(Gathering)._rounds.values()))
    for session in sessions(worker):
        for name, count in flow(worker, session).items():
            held[name] = held.get(name, 0) + count
    return {key: count for key, count in held.items() if count}


def sessions(worker: Worker) -> list[Any]:
    """Return the ends of sessions that a worker has to others; what it sends to itself uses no network."""
    peers = [peer for peer in worker.agent.peers if peer.number != worker.rank]
    return [end for peer in peers for end in peer.sessions()]


def flow(worker: Worker, end: Any) -> dict[str, int]:
    """Return the messages that wait at one end of a session, and those whose credit was never returned."""
    flow = end.flow
    held = {"in line": len(flow.queued), "held back": len(flow._held)}
    if not flow.closed:
        held["not sent"] = len(end._waiting._frames)
        if end.other is not None and end.other.flow is not None and not end.other.flow.closed:
            held["under way"] = flow._window._messages - end.other.flow.receipts.messages
    return held


def unsettled(simulation: Simulation) -> bool:
    """Return whether any worker has something left to do."""
    return any(tables(worker) for worker in simulation.living())


def check_settled(simulation: Simulation) -> Iterator[str]:
    """Check G1 and G5: when every handle is gone, nothing is left in any table of any worker."""
    for worker in simulation.living():
        if rest := tables(worker):
            pending = worker.agent.debug_info()["pending"]
            yield f"{worker.name} still holds {rest}{f' ({pending})' if pending else ''}"


def check_closed(simulation: Simulation) -> Iterator[str]:
    """Check that after shutdown the tables are empty and nothing is left to do."""
    for worker in simulation.workers:
        if worker.agent.state.leaving and worker.agent.closed and (rest := tables(worker)):
            yield f"{worker.name} is closed and still holds {rest}"
    if len(simulation.queue):
        yield f"{len(simulation.queue)} events are left after everyone has shut down"


def check_names(simulation: Simulation) -> Iterator[str]:
    """Check that no worker takes two others for live ones of one name, and that a number means one process for all."""
    identities: dict[int, bytes] = {}
    for judge in simulation.living():
        peers = judge.agent.peers
        names = Counter(each.name for each in peers.live())
        if twice := [name for name, count in names.items() if count > 1]:
            yield f"{judge.name} knows two live workers named {', '.join(twice)}"
        for number in peers.numbers():
            if identities.setdefault(number, peers.identity(number)) != peers.identity(number):
                yield f"{judge.name} takes another process for number {number} than others do"


def check_verdicts(simulation: Simulation) -> Iterator[str]:
    """Check that the remaining workers have the same verdict about each worker, and that none of them is lost."""
    living = simulation.living()
    for subject in simulation.workers:
        gone = {judge.name for judge in living if judge is not subject and judge.has_lost(subject)}
        if subject.alive and gone:
            yield f"{subject.name} stays in the job, and is lost for {', '.join(sorted(gone))}"
        elif gone and len(gone) < len(living):
            stays = sorted({judge.name for judge in living} - gone)
            yield f"{subject.name} is lost for {', '.join(sorted(gone))}, and not for {', '.join(stays)}"
