"""Steps of a chain of waits, in words: each says of a thread, a request or a lock what it waits for next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .explanation import WaitStep

if TYPE_CHECKING:
    from .records import ObservedThread
    from .waits import WaitGraph, WaitNode


def steps_of(graph: WaitGraph, chain: Sequence[WaitNode]) -> list[WaitStep]:
    """Return the steps of a chain; its last node is only what the one before it waits for.

    Args:
        graph: the graph of the waits.
        chain: nodes, each waiting for the next.
    """
    steps = []
    for position, node in enumerate(chain[:-1]):
        make = {"thread": _thread, "request": _request, "gathering": _gathering, "pool": _pool, "work": _work}
        if step := make.get(node.kind, _none)(graph, node, chain[position + 1 :]):
            steps.append(step)
    return steps


def _none(graph: WaitGraph, node: WaitNode, rest: Sequence[WaitNode]) -> WaitStep | None:
    return None  # a call, a value or a lock: the step before it names it


def _thread(graph: WaitGraph, node: WaitNode, rest: Sequence[WaitNode]) -> WaitStep:
    worker, thread = graph.seen.threads[node].best()
    text, inferred = _waits_for(graph, node, thread, rest)
    return WaitStep(worker, thread.name, text, thread.at, inferred)


def _waits_for(graph: WaitGraph, node: WaitNode, thread: ObservedThread, rest: Sequence[WaitNode]) -> tuple[str, bool]:
    following = rest[0]
    name = f" {thread.wait.name}" if thread.wait and thread.wait.name else ""
    if following.kind == "lock":
        holder = rest[1] if len(rest) > 1 else None
        if holder is None:
            return f"waits for the lock{name}", False
        return f"waits for the lock{name}, which {_name(graph, holder)} holds (inferred from its `with`)", True
    if following.kind == "thread":
        what = "the lock" if thread.wait and thread.wait.kind == "lock" else "the end of the thread"
        return (
            f"waits for {what}{name}, {'held by' if what == 'the lock' else 'which is'} {_name(graph, following)}",
            False,
        )
    if thread.wait and thread.wait.kind == "collective":
        return f"waits in {thread.wait.name} for {following.place!r}, which has not called it", False
    if thread.wait and thread.wait.kind == "window":
        sent = f" for {_call(graph, following)}" if following.kind == "call" else " for an answer"
        return f"waits for room on the way to {thread.wait.name!r}{sent}", False
    if following.kind == "call":
        return f"waits for {_call(graph, following)}", False
    if thread.wait and thread.wait.kind == "consumer":
        return f"is a generator that waits until {following.place!r} asks for the next item", True
    return f"waits in shutdown for {following.place!r}", False


def _name(graph: WaitGraph, node: WaitNode) -> str:
    worker, thread = graph.seen.threads[node].best()
    kind = "" if thread.kind == "thread" else f"{thread.kind} "
    return f"{kind}{thread.name!r} of {worker!r}"


def _call(graph: WaitGraph, node: WaitNode) -> str:
    call = graph.seen.calls.get(node)
    return f"{call.what}, since {call.seconds:.1f} s" if call else "a call"


def _request(graph: WaitGraph, node: WaitNode, rest: Sequence[WaitNode]) -> WaitStep | None:
    request = graph.seen.requests.get(node)
    following = rest[0]
    what = (request and request.what) or "a request"
    if following.kind == "call":
        return WaitStep(
            node.place, "", f"{what} has returned a future, which waits for {_call(graph, following)}", None
        )
    if following.kind == "reference":
        return WaitStep(node.place, "", f"{what} waits until the value of {following.key[0]} is made", None)
    if following.kind == "pool":
        return WaitStep(node.place, "", f"{what} of {request.sender if request else ''!r} waits for a thread", None)
    return None  # a thread serves it, or it waits in a barrier: the next step says so


def _gathering(graph: WaitGraph, node: WaitNode, rest: Sequence[WaitNode]) -> WaitStep:
    missing = graph.seen.gatherings[node].missing
    return WaitStep(
        rest[0].place, "", f"has not called _barrier or _all_gather, for which {len(missing)} workers are missing", None
    )


def _pool(graph: WaitGraph, node: WaitNode, rest: Sequence[WaitNode]) -> WaitStep:
    worker = graph.seen.workers[node.place]
    text = f"{worker.pool_busy} of {worker.pool_threads} threads are busy (requests that wait for one: {worker.pool_waiting})"
    return WaitStep(node.place, "", text, None)


def _work(graph: WaitGraph, node: WaitNode, rest: Sequence[WaitNode]) -> WaitStep | None:
    worker = graph.seen.workers.get(node.place)
    if rest[0].kind == "request" and worker is not None and worker.in_shutdown:
        return WaitStep(node.place, "", "is in shutdown, and still serves a request", None)
    return None
