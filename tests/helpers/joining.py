"""Joining a job in a test, as its only worker."""

import pytest
from telegrad import rpc
from telegrad.rpc.extend import open_agents

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TELEGRAD_SECRET")


def start(name="w", rank=0, world_size=1, seconds=5.0, **options):
    """Call ``init_rpc`` with these options."""
    rpc.init_rpc(name, None, rank, world_size, rpc.GrpcRpcBackendOptions(init_timeout=seconds, **options))


def refused(error, words, *args, **options):
    """Assert that ``start`` raises an error with these words and leaves no agent behind."""
    with pytest.raises(error, match=words):
        start(*args, **options)
    assert open_agents() == []
