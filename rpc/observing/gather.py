"""Observation of this worker: its calls, requests and links, its process and its threads.

It runs in the thread of a reader, so that it comes also while all threads for user functions are busy: no user code runs here.
"""

from __future__ import annotations

import platform
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..threads.pool import ThreadPool
from ..wire.control import Amount
from .records import (
    MOST_CHARACTERS,
    MOST_ROWS,
    Observation,
    ObservedCall,
    ObservedContext,
    ObservedLink,
    ObservedReferences,
    ObservedRequest,
)
from .stacks import QUESTIONS, observe_threads

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.dispatch import PendingCall
    from ..calls.server_call import ServerCall
    from ..links.peer import Peer

STATM = Path("/proc/self/statm")


def observe_worker(
    agent: Agent,
    owned: ObservedReferences,
    held: ObservedReferences,
    contexts: list[ObservedContext],
) -> Observation:
    """Return what this worker does now.

    Args:
        agent: the worker's agent.
        owned, held, contexts: what the layers above know.
    """
    calls = [call for call in list(agent.caller.table.calls.values()) if call.method not in QUESTIONS]
    serving = [item for item in list(agent.server.serving.items()) if item[1].method not in QUESTIONS]
    lists: dict[str, list[Any]] = {
        "calls": sorted([_call(agent, call) for call in calls], key=lambda call: -call.seconds),
        "requests": [_request(agent, sender, call) for (sender, _), call in serving],
        "owned": owned.rows,
        "held": held.rows,
        "contexts": contexts,
        "links": [_link(agent, peer) for peer in agent.peers.met() if peer.number != agent.number],
        "threads": observe_threads({id(call.future): call for call in calls}),
    }
    totals = {**{name: len(rows) for name, rows in lists.items()}, "owned": owned.total, "held": held.total}
    shown: dict[str, Any] = {name: rows[:MOST_ROWS] for name, rows in lists.items()}
    return replace(_process(agent), totals=totals, **shown)


def _process(agent: Agent) -> Observation:
    pool = agent.threads.functions
    counts = pool.counts() if isinstance(pool, ThreadPool) else {}
    return Observation(
        agent.name,
        agent.number,
        agent.rank,
        host=platform.node(),
        process_id=agent.state.process_id,
        python=platform.python_version(),
        memory_bytes=resident_bytes(),
        cpu_seconds=time.process_time(),
        pool_threads=agent.threads.size,
        pool_busy=counts.get("running", 0),
        pool_waiting=counts.get("waiting", 0),
    )


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system does not tell, the largest that it had."""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024


def _call(agent: Agent, call: PendingCall) -> ObservedCall:
    to = agent.peers.name(call.to) if call.to >= 0 else ""
    what = str(call.what)[:MOST_CHARACTERS]
    return ObservedCall(call.call_id, to, what, agent.caller.table.age(call), call.timeout, call.state.name)


def _request(agent: Agent, sender: int, call: ServerCall) -> ObservedRequest:
    what = call.what[:MOST_CHARACTERS]
    return ObservedRequest(agent.peers.name(sender), sender, call.call_id, what, call.state.name, call.cancelled)


def _link(agent: Agent, peer: Peer) -> ObservedLink:
    described = peer.describe()
    counts = [agent.flows.of(connection).counts() for connection in peer.connections()]
    flying, queued = (_total(each[name] for each in counts) for name in ("in_flight", "queued"))
    state = "dialed by the other worker" if counts and not described["lane"] else str(described["state"])
    amounts = (flying.bytes, flying.messages, queued.bytes, queued.messages, described["unacknowledged"])
    return ObservedLink(peer.info.name, state[:MOST_CHARACTERS], described["lane"] or "", *amounts)


def _total(amounts: Iterable[Iterable[int]]) -> Amount:
    pairs = [tuple(amount) for amount in amounts]
    return Amount(sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
