"""Futures in asyncio: awaited in any loop, cancelled, and completed when the loop is gone."""

import asyncio

import pytest
from telegrad.core.futures import Future


async def test_await(thread):
    future = Future()
    thread(future.set_result, 4)
    assert await future == 4
    assert await future == 4


async def test_await_raises():
    future = Future()
    asyncio.get_running_loop().call_soon(future.set_exception, ValueError("v"))
    with pytest.raises(ValueError, match="v"):
        await future


async def test_await_with_asyncio_s_own_tools(thread):
    futures = [Future() for _ in range(3)]

    async def wait_for(future):
        return await future

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(wait_for(futures[0]), 0.01)
    gathered = asyncio.gather(*map(wait_for, futures))
    for number, future in enumerate(futures):
        thread(future.set_result, number)
    assert await gathered == [0, 1, 2]


async def test_await_in_several_loops_at_once(thread):
    future, values = Future(), []

    async def other():
        values.append(await future)

    threads = [thread(asyncio.run, other()) for _ in range(2)]
    asyncio.get_running_loop().call_later(0.01, future.set_result, 9)
    assert await future == 9
    for each in threads:
        await asyncio.to_thread(each.join, 10)
    assert values == [9, 9]


def test_completing_after_the_loop_is_gone_is_harmless():
    future = Future()

    async def give_up():
        task = asyncio.ensure_future(wait_for_it())
        await asyncio.sleep(0)
        task.cancel()

    async def wait_for_it():
        await future

    asyncio.run(give_up())
    future.set_result(1)


def test_a_task_that_was_cancelled_leaves_nothing_behind():
    future = Future()

    async def wait():
        await future

    async def wait_again_and_again():
        for _ in range(20):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wait(), 0.001)

    asyncio.run(wait_again_and_again())
    assert not future._callbacks
