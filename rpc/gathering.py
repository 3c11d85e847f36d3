"""Small collective waits over RPC: ``_all_gather``, ``_barrier`` and ``_wait_all`` (PyTorch's names, underscores included)."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..core.futures import Future, complete_once, wait_all
from .agent import Agent, register_part
from .calling import async_execution, call_function
from .current import current_agent
from .options import UNSET_RPC_TIMEOUT
from .peers import Peer

Group = tuple[str, ...]
collected: ContextVar[list[Future[Any]] | None] = ContextVar("telegrad_wait_all", default=None)


class Gathering:
    """The gatherings that one agent leads, and how many it took part in, by group."""

    def __init__(self, agent: Agent) -> None:
        self._lock = threading.Lock()
        self._numbers: defaultdict[Group, Iterator[int]] = defaultdict(itertools.count)
        self._objects: defaultdict[tuple[Group, int], dict[str, Any]] = defaultdict(dict)
        self._done: defaultdict[tuple[Group, int], Future[dict[str, Any]]] = defaultdict(Future)
        agent.membership.on_lost.append(self._lost)

    def next_number(self, group: Group) -> int:
        """How many times this worker has gathered in that group before: the same everywhere, so it names the gathering."""
        with self._lock:
            return next(self._numbers[group])

    def contribute(self, group: Group, number: int, name: str, value: Any) -> Future[dict[str, Any]]:
        """One member's object came; the future holds everybody's."""
        key = group, number
        with self._lock:
            objects, done = self._objects[key], self._done[key]
            objects[name] = value
            complete = len(objects) == len(group)
            if complete:
                del self._objects[key], self._done[key]
        if complete:
            complete_once(done, objects)
        return done

    def _lost(self, peer: Peer) -> None:
        with self._lock:
            hopeless = [key for key, objects in self._objects.items() if peer.info.name in set(key[0]) - objects.keys()]
            futures = [self._done.pop(key) for key in hopeless]
            for key in hopeless:
                del self._objects[key]
        for future in futures:
            complete_once(future, error=peer.lost_error())


@async_execution
def _contribute(group: Group, number: int, name: str, value: Any) -> Future[dict[str, Any]]:
    return current_agent().part(Gathering).contribute(group, number, name, value)


def _all_gather(
    obj: Any, worker_names: Iterable[str] | None = None, timeout: float = UNSET_RPC_TIMEOUT
) -> dict[str, Any]:
    """Give an object, get everybody's, by worker name. Every worker of the group must call it.

    Args:
        obj: anything that can be sent.
        worker_names: the group; ``None`` for all workers.
        timeout: seconds, as in ``rpc_async``.

    Raises:
        WorkerLostError: a worker of the group is lost.
        ValueError: this worker is not in the group.
    """
    agent = current_agent()
    group = tuple(sorted(worker_names or (peer.info.name for peer in agent.peers)))
    if agent.name not in group:
        raise ValueError(f"worker {agent.name!r} is not among worker_names={list(group)}; only members may gather")
    number = agent.part(Gathering).next_number(group)
    args = (group, number, agent.name, obj)
    result: dict[str, Any] = call_function(agent, group[0], _contribute, args, None, timeout).wait()
    return result


def _barrier(worker_names: Iterable[str] | None = None) -> None:
    """Wait until every worker of the group called this."""
    _all_gather(None, worker_names)


@contextmanager
def _wait_all() -> Iterator[None]:
    """Wait, when the block ends, for every ``rpc_async`` made inside it; raises the first error."""
    futures: list[Future[Any]] = []
    token = collected.set(futures)
    try:
        yield
    finally:
        collected.reset(token)
    wait_all(futures)


register_part(Gathering)
