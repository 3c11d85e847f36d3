"""``rpc.map``: few calls under way, results in order or as they come, errors and losses in their turn."""

import asyncio
import itertools
import threading

import pytest
from helpers.remote import Shelf
from telegrad import rpc
from telegrad.base.errors import RpcTimeoutError, UnknownWorkerError, WorkerLostError
from telegrad.testing import in_process_cluster


@pytest.fixture
def workers():
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        yield agents
        Shelf.kept.clear()


def square(number):
    return number * number


def where(number):
    return rpc.get_worker_info().name


def fail_at_three(number):
    if number == 3:
        raise KeyError("three")
    return number


def wait_at(number):
    """Wait for the gate of that number, if there is one; note the highest number of calls at once."""
    with Shelf.kept["lock"]:
        Shelf.kept["begun"].append(number)
    if gate := Shelf.kept.get(number):
        assert gate.wait(20)
    return number


@pytest.fixture
def begun(workers):
    """Numbers of the items whose calls have begun."""
    Shelf.kept.update(lock=threading.Lock(), begun=[])
    return Shelf.kept["begun"]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("per_worker", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_every_item_has_its_result(workers, count, per_worker, ordered):
    results = rpc.map(["a", "b", 2], square, range(count), per_worker=per_worker, ordered=ordered)
    assert results.total == count
    found = list(results)
    assert (found if ordered else sorted(found)) == [number * number for number in range(count)]
    assert results.done == count and list(results) == []


def test_all_workers_take_part(workers):
    assert set(rpc.map(["b", "c"], where, range(20))) == {"b", "c"}


def test_items_may_be_endless_and_are_read_as_results_are_taken(workers):
    read = []
    items = (read.append(number) or number for number in itertools.count())
    results = rpc.map(["b"], square, items, per_worker=2)
    assert results.total is None and not read
    assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
    assert len(read) <= 5 + 4
    results.close()
    assert list(results) == []


def test_few_calls_are_under_way_and_a_slow_one_does_not_stop_the_others(workers, begun, until, thread):
    gates = {number: Shelf.kept.setdefault(number, threading.Event()) for number in (0, 1)}
    results = rpc.map(["b", "c"], wait_at, range(10), per_worker=1, ordered=False)

    def open_when_both_have_begun():
        until(lambda: len(begun) == 2)
        gates[1].set()

    thread(open_when_both_have_begun)
    assert next(results) == 1
    assert sorted(begun[:2]) == [0, 1]
    assert [next(results) for _ in range(8)] == list(range(2, 10))  # all by the worker that is free
    gates[0].set()
    assert list(results) == [0]


def test_in_order_the_others_run_ahead_of_a_slow_one_only_so_far(workers, begun, until, thread):
    gate = Shelf.kept[0] = threading.Event()
    found = []
    thread(lambda: found.extend(map_here(workers[0], 20)))
    until(lambda: len(begun) == 4)  # two for each call that may be under way
    assert not found
    gate.set()
    until(lambda: found == list(range(20)))


def map_here(agent, count):
    with agent.use():
        return list(rpc.map(["b", "c"], wait_at, range(count), per_worker=1))


def test_an_error_comes_in_its_turn_and_ends_the_iteration(workers):
    results = rpc.map(["b", "c"], fail_at_three, range(10))
    found = []
    with pytest.raises(KeyError, match="three"):
        found.extend(results)
    found = list(rpc.map(["b", "c"], fail_at_three, range(3)))
    assert found == [0, 1, 2] and results.done == 3 and list(results) == []


def test_an_item_that_cannot_be_sent_is_an_error_in_its_turn(workers):
    results = rpc.map(["b"], square, [1, 2, threading.Lock()])
    assert [next(results), next(results)] == [1, 4]
    with pytest.raises(TypeError, match="argument 0"):
        next(results)


def test_a_time_out(workers, begun):
    gate = Shelf.kept[0] = threading.Event()
    with pytest.raises(RpcTimeoutError, match="wait_at"):
        list(rpc.map(["b"], wait_at, [0], timeout=0.05))
    gate.set()


def test_a_lost_worker_is_named(workers, begun, until, thread):
    Shelf.kept[0] = gate = threading.Event()
    results = rpc.map(["b"], wait_at, [0])
    closing = thread(lambda: (until(lambda: begun), workers[1].close("it crashed")))
    with pytest.raises(WorkerLostError, match="'b'"):
        next(results)
    gate.set()
    closing.join(20)


def test_progress(workers):
    seen = []
    list(rpc.map(["b"], square, range(3), progress=lambda *numbers: seen.append(numbers)))
    list(rpc.map(["b"], square, iter([1]), progress=lambda *numbers: seen.append(numbers)))
    assert seen == [(1, 3), (2, 3), (3, 3), (1, None)]


def test_async_for(workers):
    async def total():
        return sum([result async for result in rpc.map(["b", "c"], square, range(10))])

    assert asyncio.run(total()) == 285
    with pytest.raises(KeyError, match="three"):
        asyncio.run(total_of_failing())


async def total_of_failing():
    return [result async for result in rpc.map(["b"], fail_at_three, range(10))]


def test_wrong_arguments(workers):
    with pytest.raises(UnknownWorkerError, match="nobody"):
        rpc.map(["b", "nobody"], square, [])
    with pytest.raises(TypeError, match=r"workers must be a list; write \['b'\]"):
        rpc.map("b", square, [])
    with pytest.raises(ValueError, match="you gave no workers"):
        rpc.map([], square, [])
    for wrong in (0, 1.5, "2"):
        with pytest.raises(ValueError, match="per_worker must be a whole number above 0"):
            rpc.map(["b"], square, [], per_worker=wrong)
