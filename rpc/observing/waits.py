"""Graph of the waits of all workers, made of their observations: which thread, call, request and lock waits for which.

A node waits for all its successors, but a request without a thread for any of those that its worker runs. A node without
successors ends a chain of waits: ``ends.py`` says what it is. It is made of records alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .records import (
        Observation,
        ObservedCall,
        ObservedGathering,
        ObservedReference,
        ObservedRequest,
        ObservedThread,
        ObservedWait,
    )

UNSENT = ("new", "queued", "admitted")  # states of a call that its callee does not have


class WaitNode(NamedTuple):
    """Node of the graph of waits.

    Attributes:
        kind: "thread", "call", "request", "pool", "reference", "lock", "gathering", "worker" (its program), "callers" (its
            threads that may still call what others wait for) or "work" (all that it must end before a shutdown).
        place: name of the worker; of threads and locks, their process.
        key: tells it from others of its kind and place.
    """

    kind: str
    place: str
    key: tuple[int | str, ...] = ()


@dataclass(slots=True)
class SeenThread:
    """Thread of a process, which several workers may have.

    Attributes:
        views: what each worker tells of it.
        server: the worker whose request it serves; empty if it serves none.
    """

    views: dict[str, ObservedThread] = field(default_factory=dict)
    server: str = ""

    def best(self) -> tuple[str, ObservedThread]:
        """Return the worker that knows most about its wait, and what it has seen."""
        if self.server:
            return self.server, self.views[self.server]
        return max(self.views.items(), key=_knowledge)


def _knowledge(view: tuple[str, ObservedThread]) -> tuple[bool, bool]:
    wait = view[1].wait
    return wait is not None and bool(wait.calls or wait.kind == "shutdown"), wait is not None and wait.kind != "future"


class Seen:
    """Observations, by what one looks up in them.

    Args:
        observations: one of each worker.
    """

    def __init__(self, observations: Iterable[Observation]) -> None:
        ordered = sorted(observations, key=lambda each: (each.number, each.worker))
        self.workers = {each.worker: each for each in ordered}
        self.calls: dict[WaitNode, ObservedCall] = {}
        self.requests: dict[WaitNode, ObservedRequest] = {}
        self.references: dict[WaitNode, ObservedReference] = {}
        self.gatherings: dict[WaitNode, ObservedGathering] = {}
        self.threads: dict[WaitNode, SeenThread] = {}
        self.serving: dict[WaitNode, WaitNode] = {}  # by request, the thread
        self.holders: dict[WaitNode, list[WaitNode]] = {}  # by lock, threads
        self.awaited: dict[WaitNode, list[WaitNode]] = {}  # by call or request, the values and rounds that it waits for
        for each in ordered:
            self._add(each)

    def process(self, worker: str) -> str:
        """Return a name for a worker's process."""
        seen = self.workers[worker]
        return f"{seen.host}:{seen.process_id}" if seen.process_id else worker

    def alone(self, worker: str) -> bool:
        """Return whether no other worker is in its process."""
        return sum(self.process(other) == self.process(worker) for other in self.workers) == 1

    def late_for_shutdown(self, worker: str) -> list[str]:
        """Return the workers for which one waits in shutdown: those that have not called it, or have work under way."""
        late = [name for name, each in self.workers.items() if each.error or not each.in_shutdown or _works(each)]
        if late == [worker] or not late:  # others than those that were observed
            late += [name for name in self.workers[worker].shutdown_waits if name not in self.workers]
        return late

    def _add(self, seen: Observation) -> None:
        name, process = seen.worker, self.process(seen.worker)
        self.calls |= {WaitNode("call", name, (each.call_id,)): each for each in seen.calls}
        self.requests |= {WaitNode("request", name, (each.sender_number, each.call_id)): each for each in seen.requests}
        for value in seen.owned:
            self._await(WaitNode("reference", name, (value.rref_id,)), name, value.calls, value.requests)
            self.references[WaitNode("reference", name, (value.rref_id,))] = value
        for number, gathering in enumerate(seen.gatherings):
            self._await(WaitNode("gathering", name, (number,)), name, gathering.calls, gathering.requests)
            self.gatherings[WaitNode("gathering", name, (number,))] = gathering
        for thread in seen.threads:
            self._add_thread(name, process, thread)

    def _add_thread(self, worker: str, process: str, thread: ObservedThread) -> None:
        node = WaitNode("thread", process, (thread.kind, thread.ident))
        seen = self.threads.setdefault(node, SeenThread())
        seen.views[worker] = thread
        request = WaitNode("request", worker, tuple(thread.serves))
        if request in self.requests or (thread.serves and thread.kind == "generator"):
            self.serving[request] = node
            seen.server = worker
        for lock in thread.holds:
            holders = self.holders.setdefault(WaitNode("lock", process, (lock,)), [])
            if node not in holders:
                holders.append(node)

    def _await(self, what: WaitNode, worker: str, calls: Sequence[int], requests: Sequence[Sequence[int]]) -> None:
        waiting = [WaitNode("call", worker, (each,)) for each in calls]
        waiting += [WaitNode("request", worker, tuple(each)) for each in requests]
        for each in waiting:
            self.awaited.setdefault(each, []).append(what)


@dataclass(slots=True)
class WaitGraph:
    """Graph of waits.

    Attributes:
        seen: what it was made of.
        edges: for each node, the nodes that it waits for.
        of_any: nodes that wait for one of theirs.
        inferred: edges that were concluded from source code, not observed.
    """

    seen: Seen
    edges: dict[WaitNode, list[WaitNode]] = field(default_factory=dict)
    of_any: set[WaitNode] = field(default_factory=set)
    inferred: set[tuple[WaitNode, WaitNode]] = field(default_factory=set)

    def add(self, root: WaitNode) -> None:
        """Add a node, and all that it waits for."""
        todo = [root]
        while todo:
            node = todo.pop()
            if node in self.edges:
                continue
            self.edges[node] = nexts = list(dict.fromkeys(self._nexts(node)))
            todo += reversed(nexts)
            if node.kind in ("pool", "callers"):
                self.of_any.add(node)
            if node.kind == "lock" or (node.kind == "thread" and _is_generator(node)):
                self.inferred.update((node, each) for each in nexts)

    def _nexts(self, node: WaitNode) -> Iterator[WaitNode]:
        return {
            "thread": self._of_thread,
            "call": self._of_call,
            "request": self._of_request,
            "pool": self._of_pool,
            "reference": self._of_reference,
            "lock": lambda lock: iter(self.seen.holders.get(lock, [])),
            "gathering": lambda each: (WaitNode("callers", name) for name in self.seen.gatherings[each].missing),
            "callers": self._of_callers,
            "worker": self._of_worker,
            "work": self._of_work,
        }[node.kind](node)

    def _of_thread(self, node: WaitNode) -> Iterator[WaitNode]:
        knows_most, _ = self.seen.threads[node].best()
        for worker, thread in self.seen.threads[node].views.items():
            if (wait := thread.wait) is None or wait.kind == "observation":
                continue
            yield from (WaitNode("call", worker, (each,)) for each in wait.calls)
            if worker == knows_most:  # others looked at another moment, and may have seen it wait for another lock
                yield from self._of_lock(node, wait)
            if wait.kind == "shutdown":
                yield from (WaitNode("work", name) for name in self.seen.late_for_shutdown(worker))
            if wait.kind == "loop":
                yield from self._coroutines(node)
            if wait.kind == "consumer" and wait.name in self.seen.workers:
                yield WaitNode("worker", wait.name)
            if wait.kind == "collective":
                yield from (WaitNode("worker", name) for name in wait.workers)
            if wait.kind == "window" and not wait.calls and self._is_silent(wait.name):
                yield WaitNode("worker", wait.name)

    def _of_lock(self, node: WaitNode, wait: ObservedWait) -> Iterator[WaitNode]:
        owner = WaitNode("thread", node.place, ("thread", wait.thread))
        if wait.thread and owner in self.seen.threads:
            yield owner
        elif wait.object:
            yield WaitNode("lock", node.place, (wait.object,))

    def _is_silent(self, worker: str) -> bool:
        seen = self.seen.workers.get(worker)
        return seen is not None and bool(seen.error)

    def _coroutines(self, loop: WaitNode) -> Iterator[WaitNode]:
        for node, thread in self.seen.threads.items():
            view = next(iter(thread.views.values()))
            if node.place == loop.place and view.loop and ("thread", view.loop) == loop.key:
                yield node

    def _of_call(self, node: WaitNode) -> Iterator[WaitNode]:
        call = self.seen.calls.get(node)
        yield from self.seen.awaited.get(node, [])
        if call is None:
            return
        yield from (WaitNode("call", node.place, (each,)) for each in call.calls)
        if call.to not in self.seen.workers:
            return
        request = WaitNode("request", call.to, (self.seen.workers[node.place].number, call.call_id))
        if self.seen.workers[call.to].error:
            yield WaitNode("worker", call.to)
        elif request in self.seen.requests:
            yield request
        elif call.state in UNSENT and _is_full(self.seen.workers[call.to]):
            yield WaitNode("pool", call.to)

    def _of_request(self, node: WaitNode) -> Iterator[WaitNode]:
        request = self.seen.requests.get(node)
        if request is None:
            return
        if request.state == "waiting" and _is_full(self.seen.workers[node.place]):
            yield WaitNode("pool", node.place)
        yield from (WaitNode("call", node.place, (each,)) for each in request.calls)
        yield from self.seen.awaited.get(node, [])
        if node in self.seen.serving:
            yield self.seen.serving[node]

    def _of_pool(self, node: WaitNode) -> Iterator[WaitNode]:
        for each in self.seen.workers[node.place].requests:
            request = WaitNode("request", node.place, (each.sender_number, each.call_id))
            if each.state in ("running", "streaming") and self._holds_place(request):
                yield request

    def _holds_place(self, request: WaitNode) -> bool:
        # A thread that waits for a future gives its place in the pool to another one.
        thread = self.seen.serving.get(request)
        return thread is None or not any(view.waits for view in self.seen.threads[thread].views.values())

    def _of_reference(self, node: WaitNode) -> Iterator[WaitNode]:
        if maker := self.seen.references[node].maker:
            yield WaitNode("request", node.place, tuple(maker))

    def _of_worker(self, node: WaitNode) -> Iterator[WaitNode]:
        seen = self.seen.workers.get(node.place)
        return iter(()) if seen is None or seen.error else self._own_threads(node.place)

    def _of_callers(self, node: WaitNode) -> Iterator[WaitNode]:
        """Return a worker's threads that may call ``_barrier``: its program's, and those that serve requests.

        In shutdown the main thread calls nothing more, but any other may: until then the worker is not blocked.
        """
        seen = self.seen.workers.get(node.place)
        found = [] if seen is None or seen.error else list(self._own_threads(node.place))
        if seen is not None and found:
            process = self.seen.process(node.place)
            for thread, each in self.seen.threads.items():
                view = each.views.get(node.place) if thread.place == process else None
                if view is not None and (view.serves or (seen.in_shutdown and view.at and not view.main)):
                    found.append(thread)
        yield from found or [WaitNode("worker", node.place)]

    def _of_work(self, node: WaitNode) -> Iterator[WaitNode]:
        seen = self.seen.workers.get(node.place)
        if seen is None or seen.error or not seen.in_shutdown:
            yield from self._of_worker(node)
            return
        yield from (WaitNode("request", node.place, (each.sender_number, each.call_id)) for each in _served(seen))
        yield from (WaitNode("call", node.place, (each.call_id,)) for each in seen.calls)

    def _own_threads(self, worker: str) -> Iterator[WaitNode]:
        """Return the threads that run a worker's program: its main thread; those with calls if others are in its process."""
        process, alone = self.seen.process(worker), self.seen.alone(worker)
        for node, thread in self.seen.threads.items():
            view = thread.views.get(worker)
            if view is None or node.place != process:
                continue
            calls = view.wait is not None and bool(view.wait.calls or view.wait.kind == "shutdown") and not view.serves
            if view.main if alone else calls:
                yield node


def _served(seen: Observation) -> list[ObservedRequest]:
    return [each for each in seen.requests if each.state != "answered"]


def _works(seen: Observation) -> bool:
    return bool(seen.calls or _served(seen))


def _is_full(seen: Observation) -> bool:
    return seen.pool_waiting > 0 or 0 < seen.pool_threads <= seen.pool_busy


def _is_generator(node: WaitNode) -> bool:
    return node.key[0] == "generator"


def wait_graph(observations: Iterable[Observation]) -> WaitGraph:
    """Return the graph of all that waits: main threads, threads that wait for something that can be told, calls, requests."""
    seen = Seen(observations)
    graph = WaitGraph(seen)
    for node in [*_waiting_threads(seen), *seen.calls, *seen.requests]:
        graph.add(node)
    for worker in seen.workers.values():
        if worker.error:
            graph.add(WaitNode("worker", worker.worker))
    return graph


def _waiting_threads(seen: Seen) -> Iterator[WaitNode]:
    for node, thread in seen.threads.items():
        _, view = thread.best()
        telling = view.wait is not None and bool(
            view.waits or view.wait.calls or view.wait.object or view.wait.kind in ("shutdown", "collective")
        )
        if (view.main or telling) and (view.wait is None or view.wait.kind != "observation"):
            yield node
