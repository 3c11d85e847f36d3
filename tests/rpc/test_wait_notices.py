"""Notices about a wait that takes long: for which workers, and for which calls."""

import importlib
import logging
import re
import threading

import pytest
from helpers.loops import ManualLoop
from telegrad import rpc
from telegrad.base.errors import RpcTimeoutError
from telegrad.base.words import abridged
from telegrad.rpc.calls import caller, waits
from telegrad.rpc.group import gathering
from telegrad.rpc.observing.observer import Observer
from telegrad.rpc.observing.reasons import MOST_ASKED, Reasons
from telegrad.rpc.threads.notices import LongWaits
from telegrad.rpc.threads.timers import Timers
from telegrad.rpc.wire.messages import Method
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
    return lambda: [text for text in texts(caplog) if not text.startswith("why worker")]


@pytest.fixture
def reasons(caplog):
    """Return a function that returns the reasons that follow the notices."""
    return lambda: [text for text in texts(caplog) if text.startswith("why worker")]


def texts(caplog):
    return [record.getMessage() for record in caplog.records]


def in_agent(agent, function):
    with agent.use():
        function()


def test_shutdown_names_the_workers_and_calls_that_it_waits_for_once(told, reasons, thread, until):
    GO_ON.clear()
    with in_process_cluster("a", "b", "c") as (a, b, c):
        with a.use():
            future = rpc.rpc_async("b", wait_to_go_on)
        ends = [thread(in_agent, agent, rpc.shutdown) for agent in (a, c)]
        until(lambda: any("'a'" in text for text in told()))
        (text,) = [text for text in told() if text.startswith("worker 'a' waits in shutdown")]
        assert "for 'b'" in text and "; it waits for the call of " in text and "on worker 'b'" in text
        until(reasons)
        (why,) = reasons()
        assert why.startswith("why worker 'a' waits:\n'b' waits for an event GO_ON in wait_to_go_on at ")
        GO_ON.set()
        assert future.wait()
        ends.append(thread(in_agent, b, rpc.shutdown))
        for end in ends:
            end.join()
    assert len(told()) == 1, "worker 'c' waits for the same"


def test_a_worker_that_serves_until_the_others_end_says_nothing(thread, until):
    with in_process_cluster("a", "b") as (a, b):
        shutdowns = [each.part(shutdown.Shutdown) for each in (a, b)]
        ends = [thread(shutdown.shut_down, b, True, 60, False)]
        until(lambda: shutdowns[1]._waits)
        assert not shutdowns[1]._notices.looking
        ends.append(thread(in_agent, a, rpc.shutdown))
        for end in ends:
            end.join()


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


def test_the_reason_of_a_long_call_and_of_a_time_out_follow_them(reasons, thread, until, caplog, monkeypatch):
    GO_ON.clear()
    monkeypatch.setattr(caller, "LONG_TIMEOUT_SECONDS", 0.0)
    caplog.set_level(logging.WARNING, "telegrad.rpc")
    with in_process_cluster("a", "b", "c") as (a, _, c), a.use():
        call = rpc.rpc_async("b", pass_to, ("c",))
        until(lambda: c.threads.functions.counts()["running"])
        notices = a.caller.table.notices
        notices._first = -1.0
        notices._look()
        until(reasons)
        (why,) = reasons()
        assert why.startswith("why worker 'a' waits:\n'c' waits for an event GO_ON in wait_to_go_on at ")
        assert "'b'" in why and "in pass_to at " in why, "'c' was asked because 'b' waits for it"
        with pytest.raises(RpcTimeoutError, match="the call of wait_to_go_on on worker 'c' got no answer"):
            rpc.rpc_sync("c", wait_to_go_on, timeout=0.05)
        until(lambda: len(reasons()) == 2)
        assert reasons()[1].startswith("why worker 'a' waits:\n'c' waits for an event GO_ON")
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("c", wait_to_go_on, timeout=0.05)
        GO_ON.set()
        assert call.wait()
        assert len(reasons()) == 2, "the same reason is not told again so soon"


@pytest.fixture
def short(monkeypatch):
    """All time-outs count as long ones."""
    GO_ON.clear()
    monkeypatch.setattr(caller, "LONG_TIMEOUT_SECONDS", 0.0)


def test_the_error_of_a_time_out_says_where_the_call_is(short):
    with in_process_cluster("a", "b") as (a, _), a.use():
        line = wait_to_go_on.__code__.co_firstlineno + 1
        place = f"at worker 'b', wait_to_go_on runs in wait_to_go_on at {__file__}:{line}"
        with pytest.raises(RpcTimeoutError, match=re.escape(f"got no answer within 1 s ({place}); give it longer")):
            rpc.rpc_sync("b", wait_to_go_on, timeout=1.0)
        GO_ON.set()


def test_the_error_of_a_call_that_waits_for_a_thread_names_what_runs(short, until):
    with in_process_cluster("a", "b") as (a, b), a.use():
        running = [rpc.rpc_async("b", wait_to_go_on, timeout=0) for _ in range(b.threads.size)]
        until(lambda: b.threads.functions.counts()["running"] == b.threads.size)
        with pytest.raises(RpcTimeoutError, match=r"threads busy in wait_to_go_on"):
            rpc.rpc_sync("b", max, args=(1, 2), timeout=0.05)
        GO_ON.set()
        assert all(each.wait(20) for each in running)


def test_a_question_is_not_told_as_what_keeps_threads_busy(monkeypatch):
    with in_process_cluster("a", "b") as (a, b), a.use():
        observer, told = b.part(Observer), []
        look = observer.here
        monkeypatch.setattr(observer, "here", lambda parts: told.append(b.waits._busy()) or look(parts))
        rpc.observe("b", parts=())
        assert len(told) == 1 and told[0].endswith("busy in other work")


def test_an_error_is_late_by_a_moment_at_most_and_few_calls_are_asked_about(short, monkeypatch):
    monkeypatch.setattr(waits, "WHERE_SECONDS", 0.1)
    with in_process_cluster("a", "b") as (a, b), a.use():
        monkeypatch.setitem(b.server.handlers, Method.EXPLAIN, lambda question: question.park())
        calls = [rpc.rpc_async("b", wait_to_go_on, timeout=0.05) for _ in range(3 * waits.MOST_WHERE)]
        asked = max_under_way(a, calls)
        for call in calls:
            with pytest.raises(RpcTimeoutError, match=r"within 0.05 s \(it may still run there\)"):
                call.wait(20)
        GO_ON.set()
        assert asked <= waits.MOST_WHERE and not a.waits._expired


def max_under_way(agent, calls):
    most = 0
    while not all(each.done() for each in calls):
        most = max(most, len(agent.caller.table.find(lambda call: call.method == Method.EXPLAIN)))
    return most


def test_a_short_time_out_asks_nothing():
    GO_ON.clear()
    with in_process_cluster("a", "b") as (a, _), a.use():
        with pytest.raises(RpcTimeoutError, match=r"\(it may still run there\)"):
            rpc.rpc_sync("b", wait_to_go_on, timeout=0.05)
        GO_ON.set()


def pass_to(worker):
    return rpc.rpc_sync(worker, wait_to_go_on)


def test_a_reason_that_cannot_be_found_is_no_error(caplog, until):
    with in_process_cluster("a", "b") as (a, _):
        fails = Reasons(a, lambda names, timeout: 1 / 0)
        caplog.set_level(logging.DEBUG, "telegrad.rpc")
        fails.tell_soon(["b"])
        until(lambda: any("cannot say why it waits" in text for text in texts(caplog)))
        until(lambda: not fails._asks)


def test_a_job_with_many_workers_is_not_asked_as_a_whole():
    asked = []
    with in_process_cluster("a") as (a,):
        reasons = Reasons(a, lambda names, timeout: asked.append(list(names)) or [])
        reasons._asks = True  # its thread does not start
        reasons.tell_soon(f"w{number}" for number in range(200))
        assert len(reasons._asked) == MOST_ASKED
        reasons._tell()
        assert [len(names) for names in asked] == [MOST_ASKED] and not reasons._asks
