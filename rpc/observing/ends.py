"""Ends of chains of waits: a node that waits for no other gets a kind, a place in the program, and a severity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .waits import UNSENT, Seen, WaitNode

if TYPE_CHECKING:
    from .records import Observation, ObservedFrame

SEVERITIES = ("deadlock", "lost", "stuck", "slow", "busy")  # the worst first
WAIT_ENDS = {
    "": ("computes", "busy", "computes"),
    "debugger": ("debugger", "busy", "is held by a debugger (telegrad debug)"),
    "sleep": ("sleeps", "busy", "sleeps"),
    "observation": ("observes", "busy", "observes the job"),
    "window": ("window", "slow", "waits for room on the way to {name!r}, which does not read what was sent"),
    "future": ("future", "stuck", "waits for a future that no call under way completes"),
    "lock": ("lock", "stuck", "waits for the lock{named}, whose holder is not known"),
    "thread": ("thread", "stuck", "waits for the end of a thread{named}"),
    "output": ("output", "stuck", "waits to write: a pipe or a disk takes no more"),
    "collective": ("collective", "stuck", "waits in {name} for others of its group"),
    "socket": ("input", "stuck", "waits for input{named}"),
    "consumer": ("generator", "stuck", "has a generator that waits until {name!r} asks for the next item"),
    "shutdown": ("shutdown", "stuck", "waits in shutdown"),
    "queue": ("queue", "stuck", "waits for an item of a queue{named}"),
    "event": ("event", "stuck", "waits for an event{named}"),
    "condition": ("condition", "stuck", "waits for a condition{named}"),
    "process": ("process", "stuck", "waits for a process{named}"),
}
"""For each kind of a thread's wait, "" for none: kind, severity and text of its end. ``{named}`` is a blank and the name."""


@dataclass(frozen=True, slots=True)
class End:
    """End of a chain of waits.

    Attributes:
        kind: a word for programs, such as "computes".
        severity: one of ``SEVERITIES``.
        worker: the worker where it is.
        text: a sentence without its place.
        at: its place in the program, if it has one.
        thread: name of the thread, if it has one.
    """

    kind: str
    severity: str
    worker: str
    text: str
    at: ObservedFrame | None = None
    thread: str = ""


def end_of(seen: Seen, node: WaitNode) -> End:
    """Return what a node is that waits for no other.

    Args:
        seen: the observations.
        node: a node of their graph, without successors.
    """
    return {
        "thread": _thread,
        "call": _call,
        "request": _request,
        "pool": _pool,
        "reference": _reference,
        "lock": _lock,
        "gathering": lambda seen, node: End("gathering", "stuck", node.place, "a barrier waits for no known worker"),
        "worker": _worker,
        "work": _worker,
    }[node.kind](seen, node)


def _thread(seen: Seen, node: WaitNode) -> End:
    worker, thread = seen.threads[node].best()
    kind, severity, text = _doing(thread.wait.kind if thread.wait else "", thread.wait.name if thread.wait else "")
    if thread.wait is None and (slow := _answers_late(seen.workers[worker])):
        text += slow
    return End(kind, severity, worker, f"{worker!r} {text}", thread.at or _last(thread.stack), thread.name)


def _doing(kind: str, name: str) -> tuple[str, str, str]:
    named = f" {name}" if name else ""
    if kind not in WAIT_ENDS:
        return kind, "stuck", f"waits for {kind}{named}"
    end, severity, text = WAIT_ENDS[kind]
    return end, severity, text.format(name=name, named=named)


def _answers_late(worker: Observation) -> str:
    return (
        f" (it took {worker.answer_seconds:.1f} s to say so: its interpreter is busy)"
        if worker.answer_seconds > 0.5
        else ""
    )


def _last(stack: list[ObservedFrame]) -> ObservedFrame | None:
    return stack[-1] if stack else None


def _call(seen: Seen, node: WaitNode) -> End:
    call = seen.calls.get(node)
    if call is None:
        return End("ended", "busy", node.place, f"{node.place!r} had a call that has ended meanwhile")
    if not call.to:
        return End("wait", "stuck", node.place, f"{node.place!r} waits for {call.what}")
    link = next((each for each in seen.workers[node.place].links if each.to == call.to), None)
    if call.to not in seen.workers:
        return End("unknown", "slow", call.to, f"{call.to!r} has {call.what}, and was not observed")
    state = link.state if link else ""
    if link is None or ("dialed" in state and "not" not in state) or state == "connected":
        way = (
            f"{link.in_flight_bytes + link.queued_bytes:,} bytes are on the way" if link else "no bytes are on the way"
        )
        if call.state in UNSENT and link is not None:
            text = (
                f"the window from {node.place!r} to {call.to!r} is full: {link.queued_messages:,} messages wait, {way}"
            )
            return End("window", "slow", call.to, text)
        text = f"{call.what} or its answer is on the way between {node.place!r} and {call.to!r}: {way}"
        return End("link", "slow", call.to, text)
    return End("link", "lost", call.to, f"the link from {node.place!r} to {call.to!r} does not work: {state}")


def _request(seen: Seen, node: WaitNode) -> End:
    request = seen.requests.get(node)
    what = (request and request.what) or "a request"
    if request is None:
        return End("ended", "busy", node.place, f"{node.place!r} served a request that has ended meanwhile")
    if request.state == "parked":
        return End("future", "stuck", node.place, f"{what} on {node.place!r} returned a future that no call completes")
    if request.state == "answered":
        text = f"{what} on {node.place!r} makes items that {request.sender!r} does not ask for"
        return End("generator", "busy", node.place, text)
    state = "is about to start" if request.state == "waiting" else "runs"
    return End("computes", "busy", node.place, f"{what} of {request.sender!r} {state} on {node.place!r}")


def _pool(seen: Seen, node: WaitNode) -> End:
    worker = seen.workers[node.place]
    text = f"{worker.pool_busy} of {worker.pool_threads} threads of {node.place!r} are busy"
    return End("pool", "stuck", node.place, text)


def _reference(seen: Seen, node: WaitNode) -> End:
    text = f"the value of {node.key[0]} was not made on {node.place!r}: no request that makes it has arrived there"
    return End("reference", "stuck", node.place, text)


def _lock(seen: Seen, node: WaitNode) -> End:
    waiting = [
        (worker, view)
        for other, thread in sorted(seen.threads.items())
        for worker, view in thread.views.items()
        if other.place == node.place and view.wait is not None and view.wait.object == node.key[0]
    ]
    worker, view = waiting[0] if waiting else (node.place, None)
    name = f" {view.wait.name}" if view and view.wait and view.wait.name else ""
    at = view.at or _last(view.stack) if view else None
    text = f"{worker!r} waits for the lock{name}, whose holder is not known"
    return End("lock", "stuck", worker, text, at, view.name if view else "")


PROCESS_TEXTS = {
    "stopped": ("stopped", "its process {id} is stopped (SIGSTOP); SIGCONT lets it go on"),
    "running": (
        "interpreter",
        "its process {id} runs: code outside Python holds its interpreter, or the machine is overloaded",
    ),
    "sleeping": (
        "silent",
        "its process {id} sleeps: code outside Python holds its interpreter, or its messages do not arrive",
    ),
    "in the kernel": ("kernel", "its process {id} waits in the kernel, for a disk or a device"),
    "dead": ("lost", "its process {id} has ended"),
    "gone": ("lost", "its process {id} has ended"),
    "joining": ("joining", "its process {id} waits for the other workers to join"),
}


def _worker(seen: Seen, node: WaitNode) -> End:
    worker = seen.workers.get(node.place)
    if worker is None:
        return End("unknown", "slow", node.place, f"{node.place!r} was not observed")
    if not worker.error:
        return End("unknown", "busy", node.place, f"{node.place!r} runs no Python that waits for a call or a barrier")
    kind, why = PROCESS_TEXTS.get(worker.process_state, ("silent", worker.error))
    views = sorted({f"{name!r}: {state}" for name, state in worker.seen_by.items()})[:5]
    known = f"; links of the others to it: {', '.join(views)}" if views else ""
    text = f"{node.place!r} does not answer: {why.format(id=worker.process_id or '')}{known}"
    return End(kind, "lost", node.place, text, worker.threads[0].at if worker.threads else None)
