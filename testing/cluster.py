"""Clusters of workers in one process, over the in-process lane: for tests, debuggers and simulations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ..agents import make_agent
from ..rpc.extend import Agent, GrpcRpcBackendOptions, InProcessLane, InProcessNetwork, Lane


@contextlib.contextmanager
def in_process_cluster(
    *names: str, options: GrpcRpcBackendOptions | None = None, make_lane: Callable[[], Lane] | None = None
) -> Iterator[list[Agent]]:
    """Yield agents that know each other; inside ``with agent.use():`` the API uses one of them.

    They are closed, without a graceful shutdown, when the block ends.

    Args:
        names: one for each agent, in order of rank.
        options: of every agent.
        make_lane: makes the lane of an agent; by default they share a network of their own.
    """
    network = InProcessNetwork()
    agents = [
        make_agent(
            name,
            rank,
            options,
            lanes=[make_lane() if make_lane else InProcessLane(network)],
            secret=b"known in one process",
        )
        for rank, name in enumerate(names)
    ]
    try:
        for agent in agents:
            agent.listen()
        for agent in agents:
            agent.start([other.record for other in agents])
        yield agents
    finally:
        for agent in agents:
            agent.close("its cluster ended")


@contextlib.contextmanager
def cluster(workers: int | Sequence[str], options: GrpcRpcBackendOptions | None = None) -> Iterator[list[Agent]]:
    """Yield workers that are agents in this process; calls inside the block are made by the first of them.

    ``with workers[2].use():`` makes another the caller. They end, without a graceful shutdown, when the block does.

    Args:
        workers: how many, named ``worker0``, ``worker1``, ...; or their names.
        options: of every worker.

    Raises:
        ValueError: there is to be none.

    Example:
        >>> from telegrad import rpc
        >>> with cluster(2) as workers:
        ...     print([worker.name for worker in workers], rpc.rpc_sync("worker1", abs, (-1,)))
        ['worker0', 'worker1'] 1
    """
    names = [f"worker{rank}" for rank in range(workers)] if isinstance(workers, int) else workers
    if not names:
        raise ValueError(f"a cluster has at least one worker; you gave {workers!r}")
    with in_process_cluster(*names, options=options) as agents, agents[0].use():
        yield agents
