"""Agents of one process whose numbers are not their ranks, as in a job that replaces lost workers."""

import contextlib

from telegrad.agents.assembly import add_parts
from telegrad.rpc.agent import Agent
from telegrad.rpc.lanes.inproc import InProcessLane, InProcessNetwork


@contextlib.contextmanager
def numbered_cluster(**numbers):
    """Yield agents by name, in the order of their ranks, each with the number that is given; the first is the current one."""
    network = InProcessNetwork()
    agents = {
        name: Agent(name, rank, None, lanes=[InProcessLane(network)], secret=b"known in one process")
        for rank, name in enumerate(numbers)
    }
    try:
        for name, agent in agents.items():
            agent.listen()
            agent.record.number = numbers[name]
        for agent in agents.values():
            agent.joined([each.record for each in agents.values()], dynamic=True, places=len(agents))
            add_parts(agent)
            agent.start()
        with next(iter(agents.values())).use():
            yield agents
    finally:
        for agent in agents.values():
            agent.close("its cluster ended")
