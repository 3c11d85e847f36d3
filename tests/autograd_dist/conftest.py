"""Fixtures of tests of distributed autograd."""

import pytest


@pytest.fixture
def contexts_end(workers, until):
    """No worker keeps a context of the test."""
    yield
    for agent in workers:
        if not agent.closed:
            until(lambda agent=agent: agent.debug_info()["contexts"] == 0)
