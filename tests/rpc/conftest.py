"""Fixtures of the rpc tests."""

import threading
from contextlib import closing
from types import SimpleNamespace

import pytest
from helpers.gates import GATE
from helpers.joining import VARIABLES
from helpers.lines import Line
from helpers.mesh_workers import NAMES
from helpers.threads import until
from telegrad.launcher.environment import reserve_port
from telegrad.rpc.lanes.large import reader
from telegrad.rpc.meshes import tree
from telegrad.rpc.threads.ioloop import LoopThread
from telegrad.testing import in_process_cluster


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


@pytest.fixture
def closed_gate():
    """Gate of ``helpers.gates``, closed; opened at the end."""
    GATE.clear()
    yield
    GATE.set()


@pytest.fixture
def deep(monkeypatch):
    """Trees of mesh calls of three hops, which take many more workers otherwise."""
    monkeypatch.setattr(tree, "MEMBERS_OF_HEAD", 6)
    monkeypatch.setattr(tree, "HOST_FAN_OUT", 4)


@pytest.fixture
def mesh_workers(deep):
    """Agents of the ``NAMES`` of ``helpers.mesh_workers``; the test's own code is the first one."""
    with in_process_cluster(*NAMES) as agents, agents[0].use():
        yield agents


@pytest.fixture
def line():
    """Stream without a loop, closed at the end."""
    line = Line()
    yield line
    line.close()
    until(lambda: line.near.fileno() < 0)


@pytest.fixture
def loop():
    """Loop in a thread of its own, stopped at the end."""
    thread = LoopThread("test-io")
    yield thread
    thread.stop()


@pytest.fixture
def no_first_thread(monkeypatch):
    """List that gets the first thread that is started for large frames: the system refuses it."""
    refused = []

    class Refused(threading.Thread):
        def start(self):
            if not refused:
                refused.append(self)
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(reader, "threading", SimpleNamespace(Thread=Refused))
    return refused
