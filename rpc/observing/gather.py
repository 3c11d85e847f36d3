"""Observation of this worker: its calls, requests and links, its process and its threads.

It runs in the thread of a reader, so that it comes also while all threads for user functions are busy: no user code runs here.
"""

from __future__ import annotations

import heapq
import platform
import resource
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from ...core.futures import Future
from ..call_states import WAITING
from ..calls.serving import CallKey, ServerCall
from ..group.gathering import Gathering
from ..group.shutdown import Shutdown
from ..threads.pool import ThreadPool
from ..wire.control import Amount
from ..wire.messages import QUESTIONS
from .completions import dependents, ids_of_waits, keys_of_requests
from .logged import observe_loops, observe_series
from .records import (
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
from .thread_waits import NO_LAYERS, WaitOf

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.dispatch import PendingCall
    from ..links.peer import Peer

Ids = dict[int, list[int]]
RELEASES = 3  # of the interpreter, to measure how long it takes to get it back
STATM = Path("/proc/self/statm")


def observe_worker(
    agent: Agent,
    owned: ObservedReferences,
    held: ObservedReferences,
    contexts: list[ObservedContext],
    layers: Mapping[CodeType, WaitOf] = NO_LAYERS,
) -> Observation:
    """Return what this worker does now.

    Args:
        agent: the worker's agent.
        owned, held, contexts: what the layers above know.
        layers: as for ``wait_of``.
    """
    calls = [call for call in list(agent.caller.table.calls.values()) if call.method not in QUESTIONS]
    serving = [item for item in list(agent.server.serving.items()) if item[1].method not in QUESTIONS]
    oldest = heapq.nlargest(MOST_ROWS, calls, key=agent.caller.table.age)
    futures, requests = _completed_by(oldest)
    lists: dict[str, list[Any]] = {
        "calls": [_call(agent, call, futures) for call in oldest],
        "requests": [_request(agent, sender, call, requests) for (sender, _), call in serving],
        "owned": owned.rows,
        "held": held.rows,
        "contexts": contexts,
        "links": [_link(agent, peer) for peer in agent.peers.met() if peer.number != agent.number],
        "threads": observe_threads(agent, futures, layers),
        "gatherings": [_gathering(*each) for each in agent.part(Gathering).open()],
        "logged": observe_series(),
        "loops": observe_loops(),
    }
    totals = {name: len(rows) for name, rows in lists.items()}
    totals |= {"calls": len(calls), "owned": owned.total, "held": held.total}
    shown: dict[str, Any] = {name: rows[:MOST_ROWS] for name, rows in lists.items()}
    return replace(_process(agent), totals=totals, **shown, **_shutdown(agent))


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


def _gathering(missing: list[str], offers: list[Future[Any]]) -> ObservedGathering:
    requests = [key for offer in offers for key in keys_of_requests(offer)]
    return ObservedGathering(missing[:MOST_ROWS], requests, [each for offer in offers for each in ids_of_waits(offer)])


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
        interpreter_wait_seconds=_interpreter_wait(),
        pool_threads=agent.threads.size,
        pool_busy=counts.get("running", 0),
        pool_waiting=counts.get("waiting", 0),
        calls_made=agent.caller.table.sent,
        requests_accepted=agent.server.accepted,
    )


def _interpreter_wait() -> float:
    """Return how long this thread waits for the interpreter after it has released it, the longest of some times."""
    longest = 0.0
    for _ in range(RELEASES):
        began = time.perf_counter()
        time.sleep(0.0)  # releases the interpreter: a thread that computes takes it, and keeps it for a switch interval
        longest = max(longest, time.perf_counter() - began)
    return longest


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system does not tell, the largest that it had."""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024


def _call(agent: Agent, call: PendingCall, futures: Ids) -> ObservedCall:
    to = agent.peers.name(call.to) if call.to >= 0 else ""
    what = str(call.what)[:MOST_CHARACTERS]
    calls = [each for each in futures.get(id(call.future), []) if each != call.call_id]
    return ObservedCall(call.call_id, to, what, agent.caller.table.age(call), call.timeout, call.state.name, calls)


def _request(agent: Agent, sender: int, call: ServerCall, calls: dict[CallKey, list[int]]) -> ObservedRequest:
    what, name = call.what[:MOST_CHARACTERS], agent.peers.name(sender)
    unconfirmed = call.state is WAITING and any(not each.done() for each in call.attached.waits_for)
    waits_for = calls.get((sender, call.call_id), [])
    return ObservedRequest(name, sender, call.call_id, what, call.state.name, call.cancelled, waits_for, unconfirmed)


def _link(agent: Agent, peer: Peer) -> ObservedLink:
    described = peer.describe()
    flows = [agent.flows.of(session) for session in peer.sessions()]
    counts, traffic = [flow.counts() for flow in flows], [flow.traffic() for flow in flows]
    flying, queued = (_total(each[name] for each in counts) for name in ("in_flight", "queued"))
    sent, received = _total(each for each, _ in traffic), _total(each for _, each in traffic)
    state = "dialed by the other worker" if counts and not described["lane"] else str(described["state"])
    amounts = (*flying, *queued, described["unacknowledged"], *sent, *received)
    return ObservedLink(
        peer.info.name, state[:MOST_CHARACTERS], described["lane"] or "", *amounts, peer.control.round_trip
    )


def _total(amounts: Iterable[Iterable[int]]) -> Amount:
    pairs = [tuple(amount) for amount in amounts]
    return Amount(sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
