"""Every test is watched: it fails if it leaves a thread, process, file, agent, reference or autograd context behind."""

import time
from contextlib import contextmanager
from multiprocessing import resource_tracker

import pytest
from telegrad.rpc.extend import Agent, GrpcRpcBackendOptions, open_agents
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing.cluster import in_process_cluster
from telegrad.testing.leaks import Watch


@pytest.fixture(scope="session", autouse=True)
def python_helpers():
    """Python's own helper process, and its pipe, live as long as the session: no test made them."""
    resource_tracker.ensure_running()


@pytest.fixture
def until():
    """``until(condition)`` polls until it holds; for what ends in the background, where no event can be waited for."""

    def wait(condition, seconds=10.0):
        deadline = time.monotonic() + seconds
        while not (result := condition()) and time.monotonic() < deadline:
            time.sleep(0.002)
        assert result, "it did not come about in time"
        return result

    return wait


@pytest.fixture(autouse=True)
def nothing_is_left():
    watch = Watch()
    yield
    leaks = watch.leaks()
    for agent in open_agents():
        if agent not in watch.agents:
            agent.close("its test ended")  # so that one test's leak is not the next one's
    if leaks:
        pytest.fail("this test left something behind:\n  " + "\n  ".join(leaks), pytrace=False)


@contextmanager
def grpc_cluster(*names, options=None):
    """``in_process_cluster`` over the gRPC lane: real sockets, one process."""
    agents = []
    try:
        for rank, name in enumerate(names):
            agents.append(Agent(name, rank, options, lanes=[GrpcLane()], secret=b"in one process"))
            agents[-1].listen()
        for agent in agents:
            agent.start([other.record for other in agents])
        yield agents
    finally:
        for agent in agents:
            agent.close("its cluster ended")


@pytest.fixture(params=[in_process_cluster, grpc_cluster], ids=["inproc", "grpc"])
def cluster(request):
    """Makes agents in this process that know each other: ``with cluster("a", "b") as (a, b)``."""
    return request.param


@pytest.fixture
def workers(cluster):
    """Three agents ``a``, ``b`` and ``c``; the test's own code is ``a``."""
    with cluster("a", "b", "c", options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents
