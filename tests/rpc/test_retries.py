"""Calls with ``retry=``: the policy as a table, the mark, and calls whose worker is lost and comes back."""

import functools
import math
import threading
import time

import numpy as np
import pytest
from helpers.threads import until
from telegrad import rpc
from telegrad.agents.starting import start_grpc
from telegrad.base.errors import (
    AgentClosedError,
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    RpcCancelledError,
    RpcTimeoutError,
    WorkerLostError,
)
from telegrad.rpc import RetryPolicy
from telegrad.rpc.extend import shut_down
from telegrad.testing import in_process_cluster

QUICK = RetryPolicy(attempts=5, wait=(0.01, 2, 0.1))
RAN = []


@rpc.idempotent
def double(number):
    return number * 2


@rpc.idempotent
def fail(error):
    RAN.append(error)
    raise error


@rpc.idempotent
def wait_at(gate):
    return GATES[gate].wait(30)


GATES = {}


@pytest.fixture
def gate():
    GATES["one"] = made = threading.Event()
    yield made
    made.set()


@pytest.fixture
def pair():
    with in_process_cluster("a", "b") as (a, b), a.use():
        yield a, b


@pytest.fixture
def join(outside_a_job, tmp_path):
    """Function that lets a worker join a dynamic group in a file; all are closed at the end."""
    agents = []

    def begin(name, rank):
        options = rpc.GrpcRpcBackendOptions(init_method=f"file://{tmp_path}/group")
        agents.append(start_grpc(name, rank, 0, options))
        return agents[-1]

    yield begin
    for agent in agents:
        agent.close()


# -- the policy


@pytest.mark.parametrize(
    "attempts, wait, pauses",
    [
        (1, (1, 2, 10), [None]),
        (3, (1, 2, 10), [1, 2, None]),
        (6, (1, 2, 5), [1, 2, 4, 5, 5, None]),
        (4, (0, 2, 5), [0, 0, 0, None]),
        (4, (2, 1, 5), [2, 2, 2, None]),
        (3, (7, 2, 5), [5, 5, None]),
    ],
)
def test_the_waits_of_a_policy(attempts, wait, pauses):
    policy = RetryPolicy(attempts, wait)
    assert [policy.pause(failed) for failed in range(1, attempts + 1)] == pauses


def test_a_wait_never_overflows():
    policy = RetryPolicy(10**9, (1e-300, 1e300, 60.0))
    assert [policy.pause(failed) for failed in (1, 2, 3, 10**8)] == [1e-300, 1.0, 60.0, 60.0]


@pytest.mark.parametrize(
    "given, words",
    [
        ({"attempts": 0}, "attempts must be at least 1; you gave 0"),
        ({"attempts": 2.5}, "attempts must be a whole number.*2.5"),
        ({"attempts": True}, "attempts must be a whole number"),
        ({"wait": 3}, r"wait must be \(first seconds, factor, most seconds\); you gave 3"),
        ({"wait": (1, 2)}, "wait must be"),
        ({"wait": (1, 2, "x")}, "wait must be"),
        ({"wait": (-1, 2, 3)}, "no wait is negative"),
        ({"wait": (1, 0.5, 3)}, "the factor is at least 1"),
        ({"wait": (1, 2, math.inf)}, "endless"),
        ({"wait": (math.nan, 2, 3)}, "wait must be"),
    ],
)
def test_a_wrong_policy_is_refused(given, words):
    with pytest.raises(ArgumentError, match=words):
        RetryPolicy(**given)


# -- the mark


def test_a_function_without_the_mark_is_refused_by_name(pair):
    for call in (rpc.rpc_sync, rpc.rpc_async):
        with pytest.raises(ArgumentValueError, match=r"retry= may run unmarked twice.*@rpc\.idempotent"):
            call("b", unmarked, retry=QUICK)


def unmarked():
    """Never run."""


def test_methods_lambdas_and_partials_carry_the_mark(pair):
    class Marked:
        @rpc.idempotent
        @staticmethod
        def static():
            return 1

        @rpc.idempotent
        def bound(self):
            return 2

    for function, args in ((Marked.static, ()), (functools.partial(double, 1), ()), (rpc.idempotent(lambda: 4), ())):
        assert rpc.rpc_sync("b", function, args, retry=QUICK) in (1, 2, 4)
    assert rpc.rpc_sync("b", Marked.bound, (None,), retry=QUICK) == 2


@pytest.mark.parametrize("wrong", [3, int, len])
def test_what_has_no_room_for_the_mark_is_told(wrong):
    with pytest.raises(ArgumentTypeError, match="idempotent"):
        rpc.idempotent(wrong)


def test_a_retry_that_is_no_policy_is_told(pair):
    with pytest.raises(ArgumentTypeError, match=r"retry= takes a RetryPolicy.* you gave 3"):
        rpc.rpc_sync("b", double, (1,), retry=3)


# -- calls


def test_a_call_that_is_answered_is_sent_once(pair):
    assert rpc.rpc_sync("b", double, (np.arange(3),), retry=QUICK).tolist() == [0, 2, 4]
    assert rpc.rpc_async(1, double, (4,), retry=QUICK).wait() == 8
    assert pair[1].server.accepted == 2


@pytest.mark.parametrize(
    "error", [ValueError("mine"), WorkerLostError("another is lost", "c"), ConnectionError("mine")]
)
def test_an_exception_of_the_function_is_no_reason_to_run_it_again(pair, error):
    RAN.clear()
    with pytest.raises(type(error), match=str(error)):
        rpc.rpc_sync("b", fail, (error,), retry=QUICK)
    assert len(RAN) == 1


def test_an_argument_that_cannot_be_sent_is_refused_at_once(pair):
    with pytest.raises(TypeError, match="argument 0"):
        rpc.rpc_async("b", double, (threading.Lock(),), retry=QUICK)


def test_a_worker_that_cannot_come_back_fails_the_call_at_once(pair):
    assert rpc.rpc_sync("b", double, (1,)) == 2
    pair[1].close()
    until(lambda: pair[0].peers.find("b").gone)
    with pytest.raises(WorkerLostError, match="'b'"):
        rpc.rpc_sync("b", double, (1,), retry=RetryPolicy(attempts=3, wait=(0, 1, 0)))


def test_it_ends_at_its_time_out(pair, gate):
    with pytest.raises(RpcTimeoutError, match="wait_at on worker 'b'"):
        rpc.rpc_sync("b", wait_at, ("one",), timeout=0.05, retry=QUICK)


def test_it_can_be_cancelled(pair, gate):
    future = rpc.rpc_async("b", wait_at, ("one",), retry=QUICK)
    future.cancel()
    with pytest.raises(RpcCancelledError):
        future.wait()
    until(lambda: not pair[0].caller.table.calls)


def test_a_call_goes_on_at_the_worker_that_joins_in_the_place_of_a_lost_one(join, gate):
    a, b = join("a", 0), join("b", 1)
    with a.use():
        under_way = rpc.rpc_async("b", wait_at, ("one",), retry=QUICK)
        until(lambda: b.server.serving)
        b.close("it is gone")
        until(lambda: a.peers.find("b").gone)
        later = [rpc.rpc_async(to, double, (21,), retry=QUICK) for to in ("b", 1, rpc.WorkerInfo("b", 1))]
        gate.set()
        join("b", 1)
        assert under_way.wait() is True and [each.wait() for each in later] == [42, 42, 42]


def test_it_waits_no_longer_than_its_time_out_for_the_worker(join):
    a, b = join("a", 0), join("b", 1)
    shut_down(b, True, 60)
    until(lambda: a.peers.find("b").gone)
    with a.use(), pytest.raises(RpcTimeoutError, match=r"'b'"):
        rpc.rpc_sync("b", double, (1,), timeout=0.2, retry=QUICK)


def test_the_end_of_the_caller_ends_it(join):
    a, b = join("a", 0), join("b", 1)
    b.close("it is gone")
    until(lambda: a.peers.find("b").gone)
    with a.use():
        waiting = rpc.rpc_async("b", double, (1,), timeout=0, retry=QUICK)
    until(lambda: a.debug_info()["pending_calls"] > 0)
    a.close()
    with pytest.raises(AgentClosedError):
        waiting.wait(30)


def test_shutdown_waits_for_it(join):
    a, b = join("a", 0), join("b", 1)
    b.close("it is gone")
    until(lambda: a.peers.find("b").gone)
    with a.use():
        waiting = rpc.rpc_async("b", double, (4,), retry=QUICK)
    ending = threading.Thread(target=shut_down, args=(a, True, 60))
    ending.start()
    join("b", 1)
    ending.join(30)
    assert waiting.wait(1) == 8


def test_it_is_as_quick_as_the_loss_is_noticed(join):
    a, b = join("a", 0), join("b", 1)
    b.close("it is gone")
    until(lambda: a.peers.find("b").gone)
    slow = RetryPolicy(attempts=2, wait=(0.01, 1, 0.01))
    with a.use():
        waiting = rpc.rpc_async("b", double, (4,), retry=slow)
        join("b", 1)
        began = time.monotonic()
        assert waiting.wait() == 8
    assert time.monotonic() - began < 5
