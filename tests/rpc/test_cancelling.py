"""``Future.cancel``: the call fails here, does not start there if it has not, and sees it if it has."""

import asyncio
import concurrent.futures
import math
import threading

import pytest
from helpers.remote import Shelf
from telegrad import rpc
from telegrad.base.errors import RpcCancelledError, RpcError, RpcTimeoutError
from telegrad.core.futures import Future


@pytest.fixture
def workers(workers):
    Shelf.kept.update(begun=threading.Event(), seen=Future(), late=[])
    yield workers
    Shelf.kept.clear()


def poll():
    """Run until nobody waits any more."""
    Shelf.kept["begun"].set()
    call = rpc.current_call()
    while not call.cancelled:
        Shelf.kept["begun"].wait(0.001)
    Shelf.kept["seen"].set_result(call.caller)


def wait():
    Shelf.kept["begun"].set()
    call = rpc.current_call()
    Shelf.kept["seen"].set_result(call.caller if call.cancellation.wait(20) else None)


async def sleep():
    Shelf.kept["begun"].set()
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        Shelf.kept["seen"].set_result(rpc.current_call().caller)
        raise


async def relay():
    await rpc.rpc_async("c", sleep)


@pytest.mark.parametrize("function", [poll, wait, sleep, relay])
def test_a_function_that_runs_hears_of_it(workers, function, until):
    future = rpc.rpc_async("b", function)
    Shelf.kept["begun"].wait(20)
    assert future.cancel()
    with pytest.raises(RpcCancelledError, match=f"the call of {function.__name__} on worker 'b' was cancelled"):
        future.wait()
    assert Shelf.kept["seen"].wait(20) == rpc.get_worker_info("b" if function is relay else "a")
    assert not future.cancel()
    until(lambda: not any(agent.server.serving for agent in workers))


@pytest.mark.parametrize("function", [poll, wait, sleep])
def test_so_it_does_when_the_caller_timed_out(workers, function):
    while not Shelf.kept["begun"].is_set():  # else a busy machine has dropped it before it ran
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("b", function, timeout=0.2)
    assert Shelf.kept["seen"].wait(20).name == "a"


@pytest.mark.parametrize("function", [wait, sleep])
def test_so_it_does_when_the_caller_is_lost(workers, function):
    rpc.rpc_async("b", function)
    Shelf.kept["begun"].wait(20)
    workers[0].close("its test ends it")
    assert Shelf.kept["seen"].wait(20).name == "a"


async def test_a_task_that_is_cancelled_cancels_the_call_that_it_awaits(cluster):
    Shelf.kept.update(begun=threading.Event(), seen=Future())
    with cluster("a", "b") as (a, _), a.use():
        call = rpc.rpc_async("b", sleep)
        await asyncio.to_thread(Shelf.kept["begun"].wait, 20)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(as_coroutine(call), 0.2)
        assert (await Shelf.kept["seen"]).name == "a"


async def as_coroutine(future):
    return await future


def block(gate):
    Shelf.kept[gate].wait(20)


def test_a_call_that_waits_for_a_thread_does_not_run(workers):
    gate = Shelf.kept["gate"] = threading.Event()
    busy = [rpc.rpc_async("b", block, ("gate",)) for _ in range(16)]
    late = rpc.rpc_async("b", Shelf.kept["late"].append, (1,))
    assert late.cancel()
    gate.set()
    for future in busy:
        future.wait()
    assert rpc.rpc_sync("b", abs, (-1,)) == 1
    with pytest.raises(concurrent.futures.CancelledError):
        late.wait()
    assert Shelf.kept["late"] == []


def look():
    call = rpc.current_call()
    Shelf.kept["cancellation"] = call.cancellation
    return call.cancelled, call.time_left, call.caller


def test_what_a_call_tells(workers):
    cancelled, time_left, caller = rpc.rpc_sync("b", look, timeout=20)
    assert not cancelled and 0 < time_left <= 20 and caller == rpc.get_worker_info()
    assert Shelf.kept["cancellation"].wait(20) is False
    assert rpc.rpc_sync("b", look, timeout=0)[1] == math.inf
    with pytest.raises(RpcError, match="no remote call runs here"):
        rpc.current_call()


def test_other_futures():
    future, seen = Future(), []
    then = future.then(lambda future: future.value())
    future.add_done_callback(seen.append)
    assert then.cancel() and not then.cancel()
    assert future.cancel() and seen == [future]
    for each in (future, then):
        with pytest.raises(RpcCancelledError, match="cancelled"):
            each.wait()
    completed = Future()
    completed.set_result(1)
    assert not completed.cancel() and completed.wait() == 1


async def test_awaiting_a_future_of_ones_own_does_not_cancel_it():
    future = Future()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(as_coroutine(future), 0.01)
    assert not future.done()
