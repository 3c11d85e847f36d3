"""Cluster of workers in one process, over the in-process lane: for tests, notebooks and simulations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

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
