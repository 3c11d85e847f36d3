"""Reasons of waits in words, the log of long ones, and PyTorch's counts."""

import logging
import re
import threading

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.core.futures import Future
from telegrad.rpc.calls import waits
from telegrad.rpc.extend import GrpcRpcBackendOptions, current_agent
from telegrad.rpc.wire.messages import Method
from telegrad.testing import in_process_cluster


@pytest.fixture
def gate():
    Held.gate, Held.future, Held.entered = threading.Event(), Future(), threading.Semaphore(0)
    yield Held.gate
    Held.gate.set()
    if not Held.future.done():
        Held.future.set_result(None)


@pytest.fixture
def workers(gate, monkeypatch):
    monkeypatch.setattr(waits, "SHORT_CALL_SECONDS", -1.0)  # the tests do not wait for a call to be old
    with in_process_cluster("a", "b", options=GrpcRpcBackendOptions(num_worker_threads=2)) as agents, agents[0].use():
        yield agents
        gate.set()
        if not Held.future.done():
            Held.future.set_result(None)


class Held:
    gate = threading.Event()
    future = Future()
    entered = threading.Semaphore(0)


def hold():
    Held.entered.release()
    Held.gate.wait(30)


def hold_too():
    hold()


def never():
    pass


@rpc.functions.async_execution
def later():
    Held.entered.release()
    return Held.future


def entered(count):
    for _ in range(count):
        assert Held.entered.acquire(timeout=30)


def the_wait(of):
    (sentence,) = [sentence for sentence in rpc.debug_info()["waiting"] if f"call of {of} " in sentence]
    return sentence


def test_busy_threads_are_named(workers, gate):
    calls = [rpc.rpc_async("b", hold), rpc.rpc_async("b", hold_too)]
    entered(2)
    calls.append(rpc.rpc_async("b", never))
    assert "has waited for 0 s: at worker 'b', hold runs" in the_wait("hold")
    sentence = the_wait("never")
    assert sentence.startswith(
        "the call of never on worker 'b' has waited for 0 s: at worker 'b', 2 of 2 threads busy in "
    )
    assert "hold" in sentence and "hold_too" in sentence
    gate.set()
    for call in calls:
        call.wait()
    assert rpc.debug_info()["waiting"] == []


def test_the_same_function_is_named_once(workers, gate):
    calls = [rpc.rpc_async("b", hold) for _ in range(2)]
    entered(2)
    calls.append(rpc.rpc_async("b", never))
    assert the_wait("never").endswith("2 of 2 threads busy in hold (2 times)")
    gate.set()
    tg.futures.wait_all(calls)


def test_futures_that_are_not_complete(workers, until):
    call = rpc.rpc_async("b", later)
    entered(1)
    until(
        lambda: (
            rpc.debug_info()["waiting"] == [f"{WAITS}: at worker 'b', later has returned a future that is not complete"]
        )
    )
    Held.future.set_result(5)
    assert call.wait() == 5


WAITS = "the call of later on worker 'b' has waited for 0 s"


def test_a_callee_that_does_not_say(workers, gate, monkeypatch):
    monkeypatch.setattr(waits, "EXPLAIN_SECONDS", 0.05)
    call = rpc.rpc_async("b", hold)
    entered(1)
    monkeypatch.setitem(workers[1].server.handlers, Method.EXPLAIN, lambda question: question.park())
    assert the_wait("hold").endswith("worker 'b' does not say why (RpcTimeoutError)")
    gate.set()
    call.wait()


def test_a_long_call_is_logged_once(workers, gate, caplog, until):
    table = workers[0].caller.table
    with caplog.at_level(logging.WARNING, "telegrad.rpc"):
        call = rpc.rpc_async("b", hold)
        entered(1)
        table.notices._first = -1.0  # every call is long
        table.notices._look()
        table.notices._look()
        until(lambda: [record for record in caplog.records if "hold runs" in record.getMessage()])
        gate.set()
        call.wait()
    (message,) = [record.getMessage() for record in caplog.records if "call of hold" in record.getMessage()]
    where = re.escape(__file__)
    told = r"the call of hold on worker 'b' has waited for 0 s: at worker 'b', hold runs"
    assert re.fullmatch(rf"{told} in hold at {where}:\d+", message)


def test_a_call_is_long_after_a_minute(workers):
    assert waits.LONG_CALL_SECONDS == workers[0].caller.table.notices._first == 60.0
    assert workers[0].caller.table.older_than(60.0) == []


def test_counts_have_the_names_of_pytorch(workers, gate, until):
    until(lambda: workers[1].debug_info()["agent.num_idle_threads"] == 2)
    calls = [rpc.rpc_async("b", hold), rpc.rpc_async("b", later)]
    entered(2)
    until(lambda: workers[1].debug_info()["agent.server_active_async_calls"] == 1)
    here, there = rpc.debug_info(), workers[1].debug_info()
    assert (here["agent.client_active_calls"], there["agent.server_active_calls"]) == (2, 2)
    assert there["agent.thread_pool_size"] == 2 and there["agent.num_idle_threads"] < 2
    reference = rpc.remote("b", later)
    until(lambda: workers[1].debug_info()["num_owner_rrefs"] == 1)
    until(lambda: workers[1].debug_info()["num_pending_futures"] == 1)
    with tg.autograd_dist.context():
        assert rpc.debug_info()["num_autograd_contexts"] == 1
        assert rpc.debug_info()["num_current_backward_passes"] == 0
    gate.set()
    Held.future.set_result(None)
    for call in calls:
        call.wait()
    reference.to_here()
    until(lambda: workers[1].debug_info()["num_forks"] == 1 and rpc.debug_info()["num_pending_users"] == 0)
    assert current_agent().debug_info()["num_owner_rrefs"] == 0
