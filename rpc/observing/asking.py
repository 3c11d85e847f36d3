"""Functions by which users ask what workers do, and why the job waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from ..current import current_agent
from ..links.worker_info import WorkerInfo
from ..options import check_timeout
from .causes import explain
from .observer import Observer, check_parts
from .records import ALL_PARTS, Observation

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer
    from .explanation import Explanation


def observe(
    workers: str | int | WorkerInfo | Iterable[str | int | WorkerInfo] | None = None,
    timeout: float = 2.0,
    parts: str | Iterable[str] | None = None,
) -> list[Observation]:
    """Return what workers do: calls, requests, references, contexts, links, threads with their stacks, memory.

    A worker answers also while all its threads for functions are busy, or its main thread waits. One that does not answer, as
    it is stopped or lost, is shown with ``error``, and with what the others know of it.

    Args:
        workers: a worker (name, rank or ``WorkerInfo``), or some; all that have not left, and this one, by default.
        timeout: seconds that a worker has to answer, above 0.
        parts: names of the lists that are wanted, of ``Observation``: "calls", "requests", "owned", "held", "contexts",
            "links", "threads", "gatherings", "logged", "loops"; all by default. With none, which is the cheapest look, there
            are numbers only. Stacks and references take most of the time.

    Raises:
        UnknownWorkerError: there is no such worker.
        ArgumentKindError: ``workers`` names none.
        ValueError: the time-out is not above 0, or an observation has no such list.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     (seen,) = rpc.observe("server")
        ...     print(seen.worker, seen.calls, [link.state for link in seen.links])
        server [] ['dialed by the other worker']
    """
    agent = current_agent()
    if check_timeout("timeout=", timeout) == 0:
        raise ValueError("timeout=0 leaves no time to answer; give the seconds that a worker has")
    wanted = ALL_PARTS if parts is None else check_parts(parts)
    chosen = [agent.peers.find(info) for info in agent.peers.live()] if workers is None else _chosen(agent, workers)
    return agent.part(Observer).observe(chosen, timeout, wanted)


def _chosen(agent: Agent, workers: str | int | WorkerInfo | Iterable[str | int | WorkerInfo]) -> list[Peer]:
    some = isinstance(workers, Iterable) and not isinstance(workers, (str, WorkerInfo))
    return [agent.peers.find(each) for each in cast("list[Any]", workers if some else [workers])]


def why(
    workers: str | int | WorkerInfo | Iterable[str | int | WorkerInfo] | None = None, timeout: float = 2.0
) -> Explanation:
    """Return why the job waits: deadlocks, and what calls, threads and workers wait for in the end. ``print`` shows it.

    It observes all workers (``observe``), and joins their waits to one graph.

    Args:
        workers: tell only what concerns a worker, or some, or keeps them waiting; all by default.
        timeout: seconds that a worker has to answer, above 0.

    Raises:
        UnknownWorkerError: there is no such worker.
        ValueError: the time-out is not above 0.

    Example:
        >>> import threading
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     print(rpc.why())
        nothing waits: no call is under way, and no thread waits for a worker
    """
    about = [] if workers is None else [peer.info.name for peer in _chosen(current_agent(), workers)]
    return explain(observe(timeout=timeout), about)
