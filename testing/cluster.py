"""Several workers in one process, over the in-process lane: for tests, notebooks and simulations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..rpc.extend import Agent, GrpcRpcBackendOptions, InProcessLane, InProcessNetwork


@contextlib.contextmanager
def in_process_cluster(*names: str, options: GrpcRpcBackendOptions | None = None) -> Iterator[list[Agent]]:
    """Agents that know each other; inside ``with agent.use():`` the API goes through one of them.

    They are closed, without a graceful shutdown, when the block ends.
    """
    network = InProcessNetwork()
    agents = [
        Agent(name, rank, options, lanes=[InProcessLane(network)], secret=b"known in one process")
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
