"""Reasons of calls that wait for values: told by the callee, by ``rpc.why``, and as a deadlock if it waits for itself."""

import asyncio
import signal

import pytest
from helpers.remote import Counter, Shelf, keep
from telegrad import rpc
from telegrad.base.errors import RpcTimeoutError
from telegrad.core.futures import Future


def shelved():
    return Shelf.kept["future"]


shelved._telegrad_async_execution = True


def plus_one(number):
    return number + 1


async def own_value_plus_one():
    while "own" not in Shelf.kept:
        await asyncio.sleep(0.001)
    return await rpc.rpc_async("b", plus_one, (rpc.value(Shelf.kept["own"]),), timeout=1)


def test_a_value_that_waits_for_itself_is_a_deadlock(workers, until):
    own = rpc.remote("b", own_value_plus_one)
    rpc.rpc_sync("b", keep, ("own", own))
    until(lambda: any(call.attached.awaited for call in workers[1].server.waiting.values()))
    text = str(rpc.why())
    assert "deadlock" in text, text
    with pytest.raises(RpcTimeoutError):
        own.to_here()
    Shelf.kept.clear()


def test_the_callee_says_that_a_value_is_missing(workers, until):
    Shelf.kept["future"] = outcome = Future()
    slow = rpc.remote("b", shelved)
    calls = [rpc.rpc_async(callee, Counter, (rpc.value(slow),)) for callee in "bc"]
    until(lambda: workers[2].server.waiting and workers[1].server.waiting)
    until(
        lambda: sum("the values that it needs are not there yet" in each for each in rpc.debug_info()["waiting"]) == 2
    )
    outcome.set_result(5)
    assert [call.wait().get() for call in calls] == [5, 5]
    Shelf.kept.clear()


def test_the_maker_of_a_value_and_a_worker_that_waits_for_one_are_killed(forked_job):
    running = forked_job("killed_promises", 3, [])
    running.wait(codes=[0, -signal.SIGKILL, -signal.SIGKILL])
    told = [line for line in running.output(0).splitlines() if " " not in line]
    assert told == ["worker1"] * 5 + ["worker2"] * 3 + ["over"], running.outputs()
