"""Every test is watched: it fails if it leaves a thread, process, file, agent, reference or autograd context behind."""

import time
from multiprocessing import resource_tracker

import pytest
from telegrad.rpc.extend import open_agents
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
