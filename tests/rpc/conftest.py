"""Fixtures of the rpc tests."""

from contextlib import closing

import pytest
from helpers.joining import VARIABLES
from telegrad.launcher.environment import reserve_port


@pytest.fixture
def outside_a_job(monkeypatch, tmp_path):
    """Environment of a process that no launcher has started."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def port():
    """Port that nobody uses."""
    with closing(reserve_port()) as reserved:
        return reserved.getsockname()[1]
