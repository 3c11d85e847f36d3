"""Streams of a mesh: items of all workers as they come, few ahead of the consumer; errors and losses by name."""

import asyncio
import gc
import weakref
from collections import Counter

import pytest
import telegrad as tg
from helpers.gates import GATE, hold
from helpers.threads import until
from telegrad import rpc
from telegrad.base.errors import ArgumentKindError, ArgumentValueError, WorkerLostError
from telegrad.rpc.extend import Producers
from telegrad.testing import in_process_cluster

NAMES = [f"w{rank}" for rank in range(7)]
MADE = Counter()


@pytest.fixture(autouse=True)
def workers():
    MADE.clear()
    with in_process_cluster(*NAMES) as agents, agents[0].use():
        yield agents
        until(lambda: not any(agent.part(Producers).count() for agent in agents if not agent.closed))


def where():
    return rpc.get_worker_info().name


def count(end, failing=()):
    for number in range(end):
        if number == 1 and where() in failing:
            raise KeyError(where())
        MADE[where()] += 1
        yield number


async def count_slowly(end):
    for number in range(end):
        await asyncio.sleep(0)
        yield number


def hold_at(name):
    yield 0
    if where() == name:
        hold()
    yield 1


def by_worker(pairs):
    items = {}
    for worker, item in pairs:
        items.setdefault(worker.name, []).append(item)
    return items


@pytest.mark.parametrize("ahead", [0, 1, 8])
@pytest.mark.parametrize("generator", [count, count_slowly])
def test_the_items_of_each_worker_come_in_their_order(generator, ahead):
    expected = {name: list(range(rank)) for rank, name in enumerate(NAMES) if rank}
    stream = rpc.mesh().stream(generator, (rpc.scattered(range(7)),), ahead=ahead)
    assert by_worker(stream) == expected
    assert stream.errors == {} and list(stream) == []

    async def main():
        return [pair async for pair in rpc.mesh().stream(generator, kwargs={"end": rpc.scattered(range(7))})]

    assert by_worker(asyncio.run(main())) == expected


def test_no_worker_is_far_ahead_and_all_take_turns():
    with rpc.mesh().stream(count, (1000,), ahead=3) as stream:
        taken = Counter(next(stream)[0].name for _ in range(35))
        until(lambda: len(stream._arrivals.places) == 6)  # of all but the latest, for whose next item it has not asked
        turn = [next(stream)[0].name for _ in NAMES]
        assert sorted(turn) == NAMES
        taken.update(turn)
        until(lambda: all(MADE[name] == taken[name] + 3 for name in NAMES))
        rpc.mesh().call(int).values()  # whatever a generator would do more, it had the time
        assert all(MADE[name] == taken[name] + 3 for name in NAMES)


def test_items_of_others_come_while_one_worker_is_slow(closed_gate):
    stream = rpc.mesh().stream(hold_at, ("w3",))
    first = [next(stream) for _ in range(13)]
    assert by_worker(first) == {name: [0] if name == "w3" else [0, 1] for name in NAMES}
    GATE.set()
    assert [(worker.name, item) for worker, item in stream] == [("w3", 1)]


def test_a_failed_worker_is_an_error_by_name_after_the_items_of_the_others():
    stream, items = rpc.mesh().stream(count, (3, ("w2", "w5"))), {}
    with pytest.raises(KeyError, match="w2"):
        for worker, item in stream:
            items.setdefault(worker.name, []).append(item)
    assert items == {name: [0] if name in ("w2", "w5") else [0, 1, 2] for name in NAMES}
    assert {name: type(error) for name, error in stream.errors.items()} == {"w2": KeyError, "w5": KeyError}
    assert list(stream) == []


def test_lost_workers_are_errors_by_name_before_and_during(workers):
    workers[6].close("it is lost")
    stream, items = rpc.mesh(NAMES).stream(count, (40,), ahead=2), []
    items += [next(stream) for _ in range(6)]
    workers[4].close("it is lost")
    with pytest.raises(WorkerLostError, match="'w4'"):
        items += stream  # item by item
    assert stream.errors.keys() == {"w4", "w6"} and all(name in str(stream.errors[name]) for name in stream.errors)
    found = by_worker(items)
    assert {name: found[name] for name in NAMES if name not in stream.errors} == {
        name: list(range(40)) for name in NAMES if name not in stream.errors
    }


@pytest.mark.parametrize("way", ["close", "drop", "at once"])
def test_a_stream_that_ends_early_closes_all_generators(workers, way):
    stream = rpc.mesh().stream(count, (10**6,))
    if way != "at once":
        next(stream)
    if way == "drop":
        del stream
        gc.collect()
    else:
        stream.close()
        assert list(stream) == [] and not stream.errors.keys() - set(NAMES)
    until(lambda: not any(agent.part(Producers).count() for agent in workers))
    until(lambda: not any(agent.server.serving or agent.caller.table.calls for agent in workers))


def test_gradients_of_items_are_added_up():
    def scaled(tensor, factor):
        yield tensor * factor
        yield tensor

    weight = tg.ones(2, requires_grad=True)
    with tg.autograd_dist.context() as context:
        items = rpc.mesh().stream(scaled, (weight, rpc.scattered([float(rank) for rank in range(7)])))
        tg.autograd_dist.backward(context, [sum(item.sum() for _, item in items)])
        assert tg.autograd_dist.get_gradients(context)[weight].tolist() == [28.0, 28.0]


def test_bad_input_is_told_at_once():
    mesh = rpc.mesh()
    for arguments, error, text in [
        ({"func": 3}, ArgumentKindError, "something to call"),
        ({"func": count, "args": 3}, ArgumentKindError, "args must be a tuple"),
        ({"func": count, "ahead": -1}, ArgumentValueError, "ahead"),
    ]:
        with pytest.raises(error, match=text):
            mesh.stream(**arguments)
    with pytest.raises(TypeError, match=r"abs returned int"):
        list(mesh.stream(abs, (1,)))


class Kept:
    def __init__(self, failing=False):
        if failing:
            raise KeyError("not kept")


def test_meshes_that_leave_a_function_are_freed_without_a_collection(workers):
    gc.collect()
    gc.disable()
    try:
        references = rpc.mesh().remote(Kept)
        values = rpc.mesh().call(int)
        watched = [weakref.ref(each) for each in (references, values, references.mesh)]
        del references, values
        until(lambda: not any(each() for each in watched))
        until(lambda: not any(sum(agent.debug_info()["references"].values()) for agent in workers))
    finally:
        gc.enable()


def test_an_error_on_one_worker_keeps_the_objects_of_none(workers):
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(KeyError, match="not kept"):
            rpc.mesh().remote(Kept, (rpc.scattered([False] * (len(workers) - 1) + [True]),))
        until(lambda: not any(sum(agent.debug_info()["references"].values()) for agent in workers))
    finally:
        gc.enable()
