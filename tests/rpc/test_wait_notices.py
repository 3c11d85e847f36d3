"""Notices about a wait that takes long: for which workers, and for which calls."""

import importlib
import logging
import threading

import pytest
from helpers.loops import ManualLoop
from telegrad import rpc
from telegrad.core.extend import abridged
from telegrad.rpc.group import gathering
from telegrad.rpc.threads.notices import LongWaits
from telegrad.rpc.threads.timers import Timers
from telegrad.testing.cluster import in_process_cluster

shutdown = importlib.import_module("telegrad.rpc.group.shutdown")  # whose name in the package is the function


GO_ON = threading.Event()


def wait_to_go_on():
    return GO_ON.wait(60)


@pytest.fixture
def told(caplog, monkeypatch):
    """Return a function that returns the notices, which come soon."""
    monkeypatch.setattr(shutdown, "FIRST_SECONDS", 0.2)
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


def test_waits_are_told_in_time_and_again_while_they_last():
    loop = ManualLoop()
    timers, waiting, told = Timers(lambda: loop.time), {}, []
    timers.start(loop)
    waits = LongWaits(timers, 5.0, waiting.items, lambda *each: told.append((loop.time, *each)), again=30.0)

    def at(time, **begun):
        while loop.time < time:
            loop.advance(0.5)
        for key in begun:
            waiting[key] = time
            waits.begin()

    at(1.0, short=True)
    at(2.0, long=True)
    del waiting["short"]
    at(6.0)
    at(6.5, late=True)
    assert not told
    at(7.0)
    at(36.5)
    assert told == [(7.0, "long", False), (11.5, "late", False)]
    at(37.0)
    waiting.clear()
    at(100.0)
    assert told[2:] == [(37.0, "long", True)] and not waits.looking and not loop._later


@pytest.mark.parametrize(("count", "text"), [(0, ""), (2, "0, 1"), (3, "0, 1, 2"), (5, "0, 1, 2 and 2 more")])
def test_a_list_of_names_is_not_long(count, text):
    assert abridged([*map(str, range(count))], 3) == text


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
