"""Process groups of several agents in one process, each used in a thread of its own."""

import threading

import pytest
from telegrad.collective.extend import AgentGroup, serve_groups
from telegrad.testing.cluster import in_process_cluster

SECONDS = 60.0


class Ranks:
    """Agents in one process, one for each rank."""

    def __init__(self, agents):
        self.agents = agents
        for agent in agents:
            serve_groups(agent)

    def groups(self, ranks=None, name="test", seconds=SECONDS):
        """A group of some ranks, as each of them sees it."""
        ranks = range(len(self.agents)) if ranks is None else ranks
        return [AgentGroup(self.agents[rank], name, ranks, seconds) for rank in ranks]

    def run(self, groups, function):
        """Run ``function(group)`` for each member in a thread; return the results, or the errors, in their order."""
        return self.run_in_background(groups, function)()

    def run_in_background(self, groups, function):
        """Begin what ``run`` does; return a function that waits for the results."""
        results = [None] * len(groups)

        def work(index):
            try:
                results[index] = function(groups[index])
            except Exception as error:
                results[index] = error

        threads = [threading.Thread(target=work, args=(index,)) for index in range(len(groups))]
        for thread in threads:
            thread.start()

        def wait():
            for thread in threads:
                thread.join()
            return results

        return wait


@pytest.fixture
def ranks(request):
    """``Ranks`` of as many agents as the test asks for: ``indirect=True``."""
    with in_process_cluster(*(f"rank{number}" for number in range(request.param))) as agents:
        yield Ranks(agents)
