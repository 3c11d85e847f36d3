"""Observation of this worker: its calls, requests and links, its process and its threads.

It runs in the thread of a reader, so that it comes also while all threads for user functions are busy: no user code runs here.
"""

from __future__ import annotations

import heapq
import platform
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from ...core.futures import Future
from ..calls.server_call import ServerCall
from ..group.gathering import Gathering
from ..group.shutdown import Shutdown
from ..threads.pool import ThreadPool
from ..wire.control import Amount
from ..wire.messages import QUESTIONS
from .completions import dependents, ids_of_waits, keys_of_requests
from .logged import observe_loops, observe_series
from .processes import resident_bytes
from .records import (
    ALL_PARTS,
    MOST_CHARACTERS,
    MOST_ROWS,
    Observation,
    ObservedCall,
    ObservedContext,
    ObservedGathering,
    ObservedLink,
    ObservedReferences,
    ObservedRequest,
)
from .stacks import observe_threads

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.dispatch import PendingCall
    from ..calls.handed_on import CallKey
    from ..links.peer import Peer
    from .thread_waits import WaitOf

Ids = dict[int, list[int]]
References = Callable[[bool], tuple[ObservedReferences, ObservedReferences]]
RELEASES = 3  # of the interpreter, to measure how long it takes to get it back


def _no_references(_: bool) -> tuple[ObservedReferences, ObservedReferences]:
    return ObservedReferences([], 0), ObservedReferences([], 0)


@dataclass(frozen=True, slots=True)
class UpperLayers:
    """Functions by which the layers above tell what they know of a worker.

    Attributes:
        waits: returns, by code of a function, what tells the wait of a thread in it.
        references: returns the references that the worker owns, and those of others that it holds; if its argument is
            False, only how many.
        contexts: returns the live contexts.
    """

    waits: Callable[[], Mapping[CodeType, WaitOf]]
    references: References = _no_references
    contexts: Callable[[], list[ObservedContext]] = list


def observe_worker(agent: Agent, layers: UpperLayers, parts: AbstractSet[str] = ALL_PARTS) -> Observation:
    """Return what this worker does now.

    Args:
        agent: the worker's agent.
        layers: what the layers above know.
        parts: the lists that are wanted.
    """
    calls = [call for call in list(agent.caller.table.calls.values()) if _is_shown(agent, call)]
    serving = [item for item in list(agent.server.serving.items()) if _is_shown(agent, item[1])]
    peers = [peer for peer in agent.peers.met() if peer.number != agent.number]
    owned, held = layers.references(not parts.isdisjoint(("owned", "held")))
    oldest = heapq.nlargest(MOST_ROWS, calls, key=agent.caller.table.age) if parts & {"calls", "threads"} else []
    # Which calls complete which futures tells something only beside the threads that wait for these.
    futures, answered = _completed_by(oldest) if "threads" in parts else ({}, {})
    makers: dict[str, Callable[[], list[Any]]] = {
        "calls": lambda: [_call(agent, call, futures) for call in oldest],
        "requests": lambda: [_request(agent, sender, call, answered) for (sender, _), call in serving],
        "owned": lambda: owned.rows,
        "held": lambda: held.rows,
        "contexts": layers.contexts,
        "links": lambda: [_link(agent, peer) for peer in peers],
        "threads": lambda: observe_threads(agent, futures, layers.waits()),
        "gatherings": lambda: _gatherings(agent),
        "logged": observe_series,
        "loops": observe_loops,
    }
    lists = {name: make() for name, make in makers.items() if name in parts}
    totals = {"threads": threading.active_count()} | {name: len(rows) for name, rows in lists.items()}
    totals |= {"calls": len(calls), "requests": len(serving), "owned": owned.total}
    totals |= {"held": held.total} if "held" in parts else {}
    shown: dict[str, Any] = {name: rows[:MOST_ROWS] for name, rows in lists.items()}
    return Observation(
        **_numbers(agent, parts),
        **_shutdown(agent),
        on_the_way_bytes=_on_the_way(agent, peers),
        oldest_call_seconds=agent.caller.table.age(calls[0]) if calls else 0.0,  # in the order in which they were made
        totals=totals,
        **shown,
    )


def _is_shown(agent: Agent, call: PendingCall | ServerCall) -> bool:
    # The messages of a process group are not shown: a thread that waits in a collective says for which ranks.
    return not agent.private and call.method not in QUESTIONS


def _completed_by(calls: list[PendingCall]) -> tuple[Ids, dict[CallKey, list[int]]]:
    """Return the ids of the calls that complete a future, by its ``id``; and those that answer a request, by its key.

    A wait for a call counts only where no call to a worker is known.
    """
    futures: Ids = {}
    requests: dict[CallKey, list[int]] = {}
    for call in sorted(calls, key=lambda call: call.to < 0):
        for each in dependents(call.future):
            if isinstance(each, ServerCall):
                ids = requests.setdefault(each.key, [])
            elif isinstance(each, Future):
                ids = futures.setdefault(id(each), [])
            else:
                continue
            if call.to >= 0 or not ids:
                ids.append(call.call_id)
    return futures, requests


def _shutdown(agent: Agent) -> dict[str, Any]:
    shutdown = agent.part(Shutdown)
    return {"in_shutdown": shutdown.begun, "shutdown_waits": shutdown.missing_names() if shutdown.begun else []}


def _gatherings(agent: Agent) -> list[ObservedGathering]:
    return [_gathering(*each) for each in agent.part(Gathering).open()] if agent.has(Gathering) else []


def _gathering(missing: list[str], offers: list[Future[Any]]) -> ObservedGathering:
    requests = [key for offer in offers for key in keys_of_requests(offer)]
    return ObservedGathering(missing[:MOST_ROWS], requests, [each for offer in offers for each in ids_of_waits(offer)])


def _numbers(agent: Agent, parts: AbstractSet[str]) -> dict[str, Any]:
    pool = agent.threads.functions
    counts = pool.counts() if isinstance(pool, ThreadPool) else {}
    return {
        "worker": agent.name,
        "number": agent.number,
        "rank": agent.rank,
        "host": platform.node(),
        "process_id": agent.state.process_id,
        "python": platform.python_version(),
        "memory_bytes": resident_bytes(),
        "spilled_bytes": agent.codec.budget.counts()["in_file"] if agent.codec.budget else 0,
        "cpu_seconds": time.process_time(),
        "interpreter_wait_seconds": _interpreter_wait() if "threads" in parts else 0.0,
        "pool_threads": agent.threads.size,
        "pool_busy": counts.get("running", 0),
        "pool_waiting": counts.get("waiting", 0),
        "calls_made": agent.caller.table.sent,
        "requests_accepted": agent.server.accepted,
    }


def _interpreter_wait() -> float:
    """Return how long this thread waits for the interpreter after it has released it, the longest of some times."""
    longest = 0.0
    for _ in range(RELEASES):
        began = time.perf_counter()
        time.sleep(0.0)  # releases the interpreter: a thread that computes takes it, and keeps it for a switch interval
        longest = max(longest, time.perf_counter() - began)
    return longest


def _call(agent: Agent, call: PendingCall, futures: Ids) -> ObservedCall:
    to = agent.peers.name(call.to) if call.to >= 0 else ""
    what = str(call.what)[:MOST_CHARACTERS]
    calls = [each for each in futures.get(id(call.future), []) if each != call.call_id]
    return ObservedCall(call.call_id, to, what, agent.caller.table.age(call), call.timeout, call.state.name, calls)


def _request(agent: Agent, sender: int, call: ServerCall, calls: dict[CallKey, list[int]]) -> ObservedRequest:
    what, name = call.what[:MOST_CHARACTERS], agent.peers.name(sender)
    waits_for = calls.get((sender, call.call_id), [])
    return ObservedRequest(name, sender, call.call_id, what, call.state.name, call.cancelled, waits_for)


def _link(agent: Agent, peer: Peer) -> ObservedLink:
    described = peer.describe()
    flows = [session.flow for session in peer.sessions()]
    counts, traffic = [flow.counts() for flow in flows], [flow.traffic() for flow in flows]
    flying, queued = (_total(each[name] for each in counts) for name in ("in_flight", "queued"))
    sent, received = _total(each for each, _ in traffic), _total(each for _, each in traffic)
    state = "dialed by the other worker" if counts and not described["lane"] else str(described["state"])
    amounts = (*flying, *queued, described["unacknowledged"], *sent, *received)
    return ObservedLink(
        peer.info.name, state[:MOST_CHARACTERS], described["lane"] or "", *amounts, peer.control.round_trip
    )


def _on_the_way(agent: Agent, peers: Iterable[Peer]) -> int:
    counts = (session.flow.counts() for peer in peers for session in peer.sessions())
    return sum(int(each["in_flight"][0] + each["queued"][0]) for each in counts)


def _total(amounts: Iterable[Iterable[int]]) -> Amount:
    pairs = [tuple(amount) for amount in amounts]
    return Amount(sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
