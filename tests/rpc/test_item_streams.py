"""``rpc.stream``: items as they come, few ahead of the consumer, ended early and by errors from both sides."""

import asyncio
import gc
import threading
import weakref

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import Shelf
from telegrad import rpc
from telegrad.base.errors import (
    RpcCancelledError,
    RpcTimeoutError,
    SerializationError,
    UnknownWorkerError,
    WorkerLostError,
)
from telegrad.core.futures import Future
from telegrad.rpc.extend import Producers


@pytest.fixture
def workers(workers, until):
    """Three agents; all generators have ended when the test is over."""
    Shelf.kept.update(made=[], closed=[])
    yield workers
    until(lambda: not any(agent.part(Producers).count() for agent in workers))
    Shelf.kept.clear()


@pytest.fixture
def ended(workers, until):
    """``ended()`` waits until no generator runs, and no call is under way."""

    def wait():
        until(lambda: not any(a.part(Producers).count() or a.caller.table.calls or a.server.serving for a in workers))

    return wait


def count(end, fail_at=None):
    """Count, and keep what was made and that it was closed."""
    try:
        for number in range(end):
            if number == fail_at:
                raise KeyError(number)
            Shelf.kept["made"].append(number)
            yield number
        return "the end"
    finally:
        Shelf.kept["closed"].append(rpc.current_call().cancelled)


async def count_slowly(end, fail_at=None):
    try:
        for number in range(end):
            if number == fail_at:
                raise KeyError(number)
            await asyncio.sleep(0)
            Shelf.kept["made"].append(number)
            yield number
    finally:
        Shelf.kept["closed"].append(rpc.current_call().cancelled)


GENERATORS = [count, count_slowly]


async def collect(stream):
    return [item async for item in stream]


@pytest.mark.parametrize("to", ["a", "b"])
@pytest.mark.parametrize("length", [0, 1, 2, 50])
@pytest.mark.parametrize("ahead", [0, 1, 8])
@pytest.mark.parametrize("generator", GENERATORS)
def test_all_items_come_in_order(workers, ended, generator, ahead, length, to):
    assert list(rpc.stream(to, generator, (length,), ahead=ahead)) == list(range(length))
    assert asyncio.run(collect(rpc.stream(to, generator, kwargs={"end": length}, ahead=ahead))) == list(range(length))
    ended()
    assert Shelf.kept["closed"] == [False, False]


def test_whatever_can_be_iterated(workers, ended):
    assert list(rpc.stream("b", range, (3,))) == [0, 1, 2]
    assert list(rpc.stream("b", lambda: {"x": 1, "y": 2})) == ["x", "y"]
    assert list(rpc.stream(1, lambda: map(str, [1, 2]))) == ["1", "2"]
    ended()


def test_the_value_that_a_generator_returns(workers):
    def take():
        return (yield from rpc.stream("b", count, (2,)))

    iterator = take()
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises(StopIteration) as end:
        next(iterator)
    assert end.value.value == "the end"


def test_arrays_and_references_are_items(workers, ended):
    def make(size):
        for number in range(3):
            yield np.full(size, number), rpc.RRef([number])

    for size in (3, 100_000):
        for number, (array, reference) in enumerate(rpc.stream("b", make, (size,))):
            assert array.shape == (size,) and (array == number).all()
            assert reference.to_here() == [number]
            reference.release()
        ended()


def test_gradients_flow_through_items(workers):
    def scaled(x):
        for factor in (2.0, 3.0):
            yield x * factor

    x = tg.tensor([1.0, 2.0], requires_grad=True)
    with tg.autograd_dist.context() as context:
        loss = sum(item.sum() for item in rpc.stream("b", scaled, (x,)))
        tg.autograd_dist.backward(context, [loss])
        assert tg.autograd_dist.get_gradients(context)[x].tolist() == [5.0, 5.0]


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_the_generator_is_at_most_so_far_ahead(workers, until, generator, ahead):
    with rpc.stream("b", generator, (1000,), ahead=ahead) as stream:
        for number in range(10):
            assert next(stream) == number
            until(lambda: len(Shelf.kept["made"]) == number + 1 + ahead)  # noqa: B023
            rpc.rpc_sync("b", int)  # whatever it would do more, it had the time
            assert len(Shelf.kept["made"]) == number + 1 + ahead


def test_a_paused_generator_holds_no_thread(workers):
    streams = [rpc.stream("b", count, (10,)) for _ in range(40)]  # there are 16 threads
    assert [next(stream) for stream in streams] == [0] * 40
    assert rpc.rpc_sync("b", abs, (-1,)) == 1
    assert [list(stream) for stream in streams] == [list(range(1, 10))] * 40


# -- ends


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_closing_early_closes_the_generator(workers, ended, generator, taken):
    stream = rpc.stream("b", generator, (1000,))
    assert [next(stream) for _ in range(taken)] == list(range(taken))
    stream.close()
    stream.close()
    assert list(stream) == []
    ended()
    assert Shelf.kept["closed"] in ([True], [] if taken == 0 else None)  # one that had not begun has nothing to close


@pytest.mark.parametrize("generator", GENERATORS)
def test_closing_while_the_first_item_comes_closes_the_generator(workers, ended, generator, monkeypatch):
    cancel = Future.cancel

    def cancel_late(future):
        future.wait()
        return cancel(future)

    with rpc.stream("b", generator, (1000,)):
        monkeypatch.setattr(Future, "cancel", cancel_late)
    monkeypatch.undo()
    ended()


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_dropped_stream_closes_the_generator(workers, ended, generator):
    stream = rpc.stream("b", generator, (1000,))
    next(stream)
    del stream
    gc.collect()
    ended()
    assert Shelf.kept["closed"] == [True]


def test_a_stream_that_failed_is_not_kept_by_its_error(workers):
    """The error has the frames of the consumer, which have the stream."""

    def consume():
        items = rpc.stream("b", count, args=(3, 0))
        with pytest.raises(KeyError):
            next(items)
        return weakref.ref(items)

    failed = consume()
    gc.collect()
    assert failed() is None


def test_a_stream_that_outlives_its_worker_frees_its_items_when_it_is_dropped(cluster):
    gc.disable()
    try:
        with cluster("a", "b") as (a, _), a.use():
            stream = rpc.stream("b", range, (100,))
            next(stream)
        pulls = weakref.ref(stream._pulls)
        del stream
        assert pulls() is None
    finally:
        gc.enable()


async def test_leaving_an_asynchronous_block_closes_the_generator(cluster):
    Shelf.kept.update(made=[], closed=[])
    with cluster("a", "b") as (a, b), a.use():
        async with rpc.stream("b", count_slowly, (1000,)) as stream:
            async for number in stream:
                if number == 3:
                    break
        while b.part(Producers).count():
            await asyncio.sleep(0.001)
    assert Shelf.kept.pop("closed") == [True]


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("at", [0, 3])
def test_an_error_of_the_generator_comes_after_the_items_before_it(workers, ended, generator, at):
    stream, items = rpc.stream("b", generator, (10, at)), []
    with pytest.raises(KeyError, match=str(at)) as error:
        for item in stream:
            items.append(item)  # noqa: PERF402
    assert items == list(range(at)) and "worker 'b'" in str(error.value.__cause__)
    assert list(stream) == []
    ended()


def test_an_item_that_cannot_be_sent_ends_the_stream(workers, ended):
    def make():
        try:
            yield 1
            yield threading.Lock()
            yield 3
        finally:
            Shelf.kept["closed"].append(True)

    stream = rpc.stream("b", make)
    assert next(stream) == 1
    with pytest.raises(SerializationError, match=r"lock"):
        next(stream)
    assert list(stream) == []
    ended()
    assert Shelf.kept["closed"] == [True]


class Unreadable:
    """Object that cannot be made again."""

    def __reduce__(self):
        return refuse, ()


def refuse():
    raise ValueError("cannot be read here")


def test_an_item_that_cannot_be_read_ends_the_stream_on_both_sides(workers, ended):
    def make():
        try:
            while True:
                yield Unreadable()
        finally:
            Shelf.kept["closed"].append(True)

    with pytest.raises(Exception, match="cannot be read here"):
        next(rpc.stream("b", make))
    ended()
    assert Shelf.kept["closed"] == [True]


def test_each_wait_has_a_deadline_and_only_the_waits(workers, ended, until):
    gate = Shelf.kept["gate"] = threading.Event()

    def stall():
        yield 1
        Shelf.kept["gate"].wait(20)
        yield 2

    stream = rpc.stream("b", stall, timeout=0.2)
    assert next(stream) == 1
    with pytest.raises(RpcTimeoutError, match=r"item 1 of the stream of .*stall on worker 'b'.*0\.2 s"):
        next(stream)
    assert list(stream) == []
    gate.set()
    ended()


def test_a_task_that_is_cancelled_ends_its_stream(workers, ended):
    async def forever():
        try:
            yield 1
            await asyncio.sleep(1000)
        finally:
            Shelf.kept["closed"].append(rpc.current_call().cancelled)

    async def consume(first):
        async for _ in rpc.stream("b", forever):
            first.set()

    async def cancel():
        first = asyncio.Event()
        task = asyncio.create_task(consume(first))
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    ended()
    assert Shelf.kept["closed"] == [True]


def test_closing_from_another_thread_ends_a_wait(workers, ended, until):
    Shelf.kept["gate"] = threading.Event()

    def stall():
        Shelf.kept["made"].append(0)
        while not rpc.current_call().cancelled and not Shelf.kept["gate"].wait(0.01):
            pass
        yield 1

    stream = rpc.stream("b", stall)
    closer = threading.Thread(target=lambda: (until(lambda: Shelf.kept["made"]), stream.close()))
    closer.start()
    try:
        assert list(stream) == []  # it was closed before anybody waited
    except RpcCancelledError as error:
        assert "item 0 of the stream of" in str(error)
    closer.join()
    ended()


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_lost_caller_closes_the_generator(workers, until, generator):
    a, b, _ = workers
    stream = rpc.stream("b", generator, (1000,))
    next(stream)
    a.close("its test ends it")
    until(lambda: not b.part(Producers).count())
    assert Shelf.kept["closed"] == [True]
    with pytest.raises(tg.errors.RpcError):
        list(stream)


def test_a_lost_worker_ends_the_stream_by_name(workers):
    stream = rpc.stream("b", count, (1000,), ahead=2)
    next(stream)
    workers[1].close("its test ends it")
    with pytest.raises(WorkerLostError, match="'b'"):
        list(stream)
    assert list(stream) == []


def test_bad_arguments(workers, ended):
    with pytest.raises(UnknownWorkerError, match="'a' \\(0\\)"):
        rpc.stream("nobody", count)
    with pytest.raises(ValueError, match="ahead"):
        rpc.stream("b", count, (1,), ahead=-1)
    with pytest.raises(ValueError, match="timeout"):
        rpc.stream("b", count, (1,), timeout=-2)
    with pytest.raises(TypeError, match="args"):
        rpc.stream("b", count, 1)
    with pytest.raises(TypeError, match="abs returned int"):
        next(rpc.stream("b", abs, (1,)))
    with pytest.raises(TypeError, match="returned coroutine"):
        next(rpc.stream("b", asyncio.sleep, (1,)))
    with pytest.raises(TypeError, match="missing 1 required"):
        next(rpc.stream("b", count))
    ended()
