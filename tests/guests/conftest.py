"""Fixtures of the tests with other libraries."""

import pytest


@pytest.fixture
def wide_numbers():
    """PyTorch's random numbers, the same in each run of a test, have 64 bits."""
    import torch

    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def contexts_end(workers, until):
    """No worker keeps a context of the test."""
    yield
    for agent in workers:
        until(lambda agent=agent: agent.debug_info()["contexts"] == 0)
