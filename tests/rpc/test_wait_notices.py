"""Notices about a wait that takes long: for which workers, and for which calls."""

import importlib
import logging
import threading

import pytest
from telegrad import rpc
from telegrad.rpc import gathering, notices
from telegrad.testing.cluster import in_process_cluster

shutdown = importlib.import_module("telegrad.rpc.shutdown")  # whose name in the package is the function


GO_ON = threading.Event()


def wait_to_go_on():
    return GO_ON.wait(60)


@pytest.fixture
def told(caplog, monkeypatch):
    """Return a function that returns the notices, which come at once."""
    monkeypatch.setattr(notices, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(gathering, "NOTICE_SECONDS", 0.0)
    monkeypatch.setattr(shutdown, "INQUIRY_SECONDS", 0.01)
    monkeypatch.setattr(shutdown, "NOTED_SECONDS", 0.0)
    caplog.set_level(logging.WARNING, "telegrad.rpc")
    return lambda: [record.getMessage() for record in caplog.records]


def in_agent(agent, function):
    with agent.use():
        function()


def test_shutdown_names_the_workers_and_calls_that_it_waits_for_once(told, thread, until):
    GO_ON.clear()
    with in_process_cluster("a", "b", "c") as (a, b, c):
        with a.use():
            future = rpc.rpc_async("b", wait_to_go_on)
        ends = [thread(in_agent, agent, rpc.shutdown) for agent in (a, c)]
        until(lambda: any("'a'" in text for text in told()))
        (text,) = [text for text in told() if text.startswith("worker 'a' waits in shutdown")]
        assert "for 'b'" in text and "; it waits for the call of " in text and "on worker 'b'" in text
        GO_ON.set()
        assert future.wait()
        ends.append(thread(in_agent, b, rpc.shutdown))
        for end in ends:
            end.join()
    assert len(told()) == 1, "worker 'c' waits for the same"


def test_a_barrier_names_the_workers_that_have_not_come_once(told, thread, until):
    with in_process_cluster("a", "b") as (a, b):
        for number in (1, 2):
            first = thread(in_agent, b, rpc._barrier)
            until(lambda number=number: len(told()) == number)
            in_agent(a, rpc._barrier)
            first.join()
    assert told() == ["a call of _barrier or _all_gather waits for 'a'; others have called it"] * 2


def test_a_barrier_that_waits_less_says_nothing(told, thread, monkeypatch):
    monkeypatch.setattr(gathering, "NOTICE_SECONDS", 1000.0)
    with in_process_cluster("a", "b") as agents:
        for each in [thread(in_agent, agent, rpc._barrier) for agent in agents]:
            each.join()
    assert told() == []
