"""Futures as arguments: the result of a call that is under way goes from its callee to the call that needs it."""

import time

import pytest
import telegrad as tg
from helpers.remote import Counter, same, wait_and_make
from telegrad import rpc
from telegrad.base.errors import (
    RpcCancelledError,
    RpcTimeoutError,
    SerializationError,
    UnknownWorkerError,
    WorkerLostError,
)
from telegrad.core.futures import Future
from telegrad.rpc.calls import waits
from telegrad.rpc.calls.caller import LONG_TIMEOUT_SECONDS
from telegrad.rref.numbers import ReferenceMethod

pytestmark = pytest.mark.usefixtures("tables_end_empty")


def add(left, right=0):
    return left + right


def total(values):
    return sum(values["numbers"]) + values["more"][0]


def fail():
    raise KeyError("nothing there")


@pytest.mark.parametrize("callee", ["a", "b", "c"])
@pytest.mark.parametrize("maker", ["a", "b"])
def test_a_future_is_an_argument(workers, maker, callee):
    number = rpc.rpc_async(maker, same, (3,))
    given = {"numbers": [number, rpc.rpc_async("c", add, (number, 1))], "more": (number,)}
    assert rpc.rpc_sync(callee, total, (given,)) == 10
    number.wait()
    assert rpc.rpc_sync(callee, add, (number, 1)) == 4  # the value itself is sent
    assert rpc.remote(callee, add, (rpc.rpc_async(maker, same, (3,)), 1)).to_here() == 4


@pytest.mark.parametrize("callee", ["b", "c"])
def test_a_result_is_handed_on_by_its_callee(workers, gate, callee, until):
    slow = rpc.rpc_async("b", wait_and_make, ("gate",))
    after = [rpc.rpc_async(callee, Counter.add, (slow, number)) for number in (1, 2)]
    until(lambda: len(workers["abc".index(callee)].server.waiting) == 2)
    if callee == "c":
        serving = workers[1].server.serving
        until(lambda: sum(call.method == ReferenceMethod.RESULT for call in list(serving.values())) == 2)
    asked = workers[0].server.accepted
    gate.set()
    # Two copies, or one object, to which either may add first.
    assert sorted(call.wait() for call in after) in ([[1, 2]] if callee == "c" else [[1, 3], [2, 3]])
    assert workers[0].server.accepted == asked  # the caller was not asked


def test_any_future_of_the_caller_is_an_argument(workers, until):
    outcome = Future()
    call = rpc.rpc_async("b", add, (outcome.then(lambda done: done.value() * 2), 1))
    until(lambda: workers[1].server.waiting)
    outcome.set_result(5)
    assert call.wait() == 11


def timed_out(agent, future, seconds=1.0):
    """Return the message of the error of a call that times out now, as if after so many seconds."""
    agent.caller.time_out(agent.caller.table.calls[future.call[1]], seconds)
    with pytest.raises(RpcTimeoutError) as caught:
        future.wait(20)
    return str(caught.value)


@pytest.mark.parametrize("seconds", [1.0, LONG_TIMEOUT_SECONDS])
def test_a_call_that_times_out_names_the_argument_that_never_became_ready(workers, seconds):
    nested = rpc.rpc_async("b", add, (1,), {"right": {"deep": [Future()]}}, timeout=0)
    told = timed_out(workers[0], nested, seconds)
    assert "(its argument right= is not ready: it is a future of this worker that is not complete)" in told


def test_a_call_that_times_out_names_the_call_that_makes_its_argument(workers, gate):
    slow = rpc.rpc_async("b", wait_and_make, ("gate",))
    after = rpc.rpc_async("c", add, (1, slow), timeout=0)
    told = timed_out(workers[0], after)
    assert "(its argument 1 is not ready: it is the result of the call of wait_and_make on worker 'b')" in told


def test_a_call_whose_arguments_are_there_may_still_run(workers, gate):
    rpc.rpc_sync("b", same, (1,))  # there is a connection
    outcome = Future()
    call = rpc.rpc_async("b", wait_and_make, (outcome,), timeout=0)
    outcome.set_result("gate")
    assert "(it may still run there)" in timed_out(workers[0], call)


def test_a_call_that_waits_long_for_an_argument_says_so(workers, monkeypatch):
    monkeypatch.setattr(waits, "SHORT_CALL_SECONDS", -1.0)
    rpc.rpc_sync("b", same, (1,))  # there is a connection
    outcome = Future()
    call = rpc.rpc_async("b", add, (outcome, 1))
    (said,) = rpc.debug_info()["waiting"]
    assert "its argument 0 is not ready" in said
    outcome.set_result(1)
    assert call.wait() == 2


@pytest.mark.parametrize("callee", ["b", "c"])
def test_a_chain_of_calls(workers, callee):
    number = rpc.rpc_async("b", same, (0,))
    for _ in range(20):
        number = rpc.rpc_async(callee, add, (number, 1))
    assert number.wait() == 20


@pytest.mark.parametrize("callee", ["b", "c"])
def test_the_error_of_a_call_is_that_of_the_next(workers, callee):
    broken = rpc.rpc_async("b", fail)
    error = rpc.rpc_async(callee, add, (broken, 1)).then(lambda done: done.exception()).wait()
    assert isinstance(error, KeyError) and "on worker 'b'" in str(error.__cause__)


@pytest.mark.parametrize("callee", ["b", "c"])
def test_a_cancelled_call_fails_the_next(workers, gate, callee, until):
    slow = rpc.rpc_async("b", wait_and_make, ("gate",))
    waiting = rpc.rpc_async("b", Counter.get, (slow,))
    after = rpc.rpc_async(callee, add, (waiting, 1))
    until(lambda: len(workers[1].server.handed_on.wanted) == 2)
    waiting.cancel()
    error = after.then(lambda done: done.exception()).wait()
    assert isinstance(error, RpcCancelledError)


@pytest.mark.parametrize("callee", ["b", "c"])
def test_a_call_that_is_cancelled_while_it_runs_fails_the_next(workers, gate, callee, until):
    slow = rpc.rpc_async("b", wait_and_make, ("gate",))
    before = rpc.rpc_async(callee, Counter.get, (slow,))
    until(lambda: workers[1].server.handed_on.wanted)
    slow.cancel()
    after = rpc.rpc_async(callee, Counter.get, (slow,))
    for call in (before, after):  # the function still runs
        assert isinstance(call.then(lambda done: done.exception()).wait(), RpcCancelledError)


def test_a_question_that_comes_after_the_cancel_does_not_wait_for_the_function(workers, gate, until):
    slow = rpc.rpc_async("b", wait_and_make, ("gate",))
    key = (0, slow.call[1])
    until(lambda: key in workers[1].server.serving)
    slow.cancel()
    until(lambda: (serving := workers[1].server.serving.get(key)) is None or serving.cancelled)
    assert workers[1].server.handed_on.result_of(key) is None and not workers[1].server.handed_on.wanted


def test_a_callee_is_lost_before_its_result_is_handed_on(workers, gate, until):
    slow = rpc.rpc_async("b", wait_and_make, ("gate",))
    after = rpc.rpc_async("c", add, (slow, 1))
    until(lambda: workers[1].server.handed_on.wanted)
    workers[1].close()
    error = after.then(lambda done: done.exception()).wait()
    assert isinstance(error, WorkerLostError) and "'b'" in str(error)


def test_a_callee_that_has_just_joined_is_not_asked(workers, gate, until, monkeypatch):
    """The worker that needs the result has not heard of it yet: it asks the caller."""
    b, c = workers[1:]
    find = b.peers.at

    def at(number):
        if number == c.number:
            raise UnknownWorkerError("it joins now")
        return find(number)

    monkeypatch.setattr(b.peers, "at", at)
    slow = rpc.rpc_async("c", wait_and_make, ("gate",))
    after = rpc.rpc_async("b", Counter.add, (slow, 1))
    until(lambda: b.server.waiting)
    gate.set()
    assert after.wait(30) == 1


@pytest.mark.parametrize("callee", ["a", "b"])
def test_a_future_is_a_receiver(workers, gate, callee, until):
    slow = rpc.rpc_async(callee, wait_and_make, ("gate",))
    chain = slow.remote().me().remote().add(2)
    assert chain.owner_name() == callee
    until(lambda: len(workers["ab".index(callee)].server.waiting) == 2)
    gate.set()
    assert chain.to_here() == 2
    assert slow.wait().get() in (0, 2)  # a copy
    assert slow.remote().add(3).to_here() >= 3  # its value is there: it is sent back
    with pytest.raises(TypeError, match="only the future of a remote call"):
        Future().remote()


def returned():
    return Future()


def test_a_future_is_no_result(workers):
    with pytest.raises(SerializationError, match="in arguments only"):
        rpc.rpc_sync("b", returned)


def double(x):
    return x * 2.0


def double_slowly(x):
    time.sleep(0.02)
    return x * 2.0


def product(x, y):
    return (x * y).sum()


@pytest.mark.parametrize("function", [double, double_slowly])
@pytest.mark.parametrize("callee", ["a", "b", "c"])
def test_gradients_flow_through_a_future(workers, callee, function):
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = tg.tensor([0.3, 0.1, 0.7], requires_grad=True)
    found = []
    for promised in (True, False):
        with tg.autograd_dist.context() as context:
            doubled = rpc.rpc_async("b", function, (x,))
            loss = rpc.rpc_sync(callee, product, (doubled if promised else doubled.wait(), y))
            tg.autograd_dist.backward(context, [loss])
            gradients = tg.autograd_dist.get_gradients(context)
            found.append((gradients[x].tolist(), gradients[y].tolist()))
    assert found[0] == found[1]
