"""Objects of a gathering are packed once for all members, and large ones go over the tree of a mesh."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import telegrad as tg
from helpers.lanes import in_process
from helpers.threads import until
from telegrad import rpc
from telegrad.base.errors import RpcTimeoutError, WorkerLostError
from telegrad.rpc.group import gathering
from telegrad.rpc.group.gathering import Gathering, _all_gather, _all_gather_async
from telegrad.testing import in_process_cluster

NAMES = ["a", "b", "c", "d", "e", "f"]
LARGE = 100_000  # bytes of one object: five answers with six of them are large
SOON = 60
WAITS = "_all_gather, whose objects are on their way from worker 'a'"


class Counted:
    """Object that counts how often it is pickled."""

    pickled = 0

    def __reduce__(self):
        type(self).pickled += 1
        return Counted, ()


@pytest.fixture
def workers(tmp_path):
    with in_process_cluster(*NAMES, make_lane=in_process(tmp_path)) as agents:
        yield agents


def everywhere(agents, run):
    """Return what ``run`` returns for each agent, in threads of their own."""

    def work(agent):
        with agent.use():
            return run(agent)

    with ThreadPoolExecutor(len(agents)) as pool:
        return list(pool.map(work, agents, timeout=SOON))


def forgotten(agents):
    return not any(agent.part(Gathering).coming.expected for agent in agents)


def test_the_leader_pickles_objects_once(workers):
    Counted.pickled = 0
    found = everywhere(workers, lambda agent: _all_gather(Counted()))
    assert all(sorted(each) == NAMES for each in found)
    assert Counted.pickled <= 3 * len(NAMES)  # by each member, by the leader for all, and by the leader for itself


def large(agent):
    return tg.full((LARGE // 4,), float(agent.rank))


def test_large_objects_go_over_the_tree(workers, monkeypatch):
    came = []
    arrived = gathering.ComingObjects.arrived
    monkeypatch.setattr(
        gathering.ComingObjects, "arrived", lambda coming, key, *more: (came.append(key), arrived(coming, key, *more))
    )
    for _ in range(2):
        for found in everywhere(workers, lambda agent: _all_gather(large(agent))):
            assert [(found[name][0].item(), len(found[name])) for name in NAMES] == [
                (float(rank), LARGE // 4) for rank in range(len(NAMES))
            ]
    assert len(came) == 2 * (len(NAMES) - 1) and forgotten(workers)


def test_members_do_not_share_the_memory_of_what_comes_over_the_tree(workers):
    def change(agent):
        found = _all_gather(np.zeros(LARGE, np.uint8))
        found["b"] += agent.rank + 1
        return int(found["b"][-1])

    assert everywhere(workers, change) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("group", [["b", "c"], ["b", "c", "d"]])
def test_few_members_get_answers(workers, group, monkeypatch):
    monkeypatch.setattr(gathering.ComingObjects, "arrived", None)
    members = [agent for agent in workers if agent.name in group]
    for found in everywhere(members, lambda agent: _all_gather(np.zeros(10 * LARGE), group)):
        assert [*found] == group


def test_tensors_that_require_grad_get_answers(workers, monkeypatch):
    monkeypatch.setattr(gathering.ComingObjects, "arrived", None)
    for found in everywhere(workers, lambda agent: _all_gather(large(agent).requires_grad_())):
        assert all(each.requires_grad for each in found.values())


def test_gatherings_of_several_groups_and_threads_do_not_meet(workers):
    groups = [None, NAMES[:5], NAMES[1:]]

    def gather(agent):
        mine = [group for group in groups if group is None or agent.name in group]
        with ThreadPoolExecutor(len(mine)) as pool:
            futures = [pool.submit(in_use, agent, group, index) for index, group in enumerate(mine)]
            return [each.result(SOON) for each in futures]

    def in_use(agent, group, index):
        with agent.use():
            found = _all_gather((group, np.full(LARGE, agent.rank, np.uint8)), group)
            return all(each[0] == group for each in found.values()) and [*found] == sorted(group or NAMES)

    assert all(all(each) for each in everywhere(workers, gather)) and forgotten(workers)


def hold_back(monkeypatch, names):
    """Let these members not run what brings them their objects."""
    deliver = gathering._deliver

    def held(group, tickets, objects):
        if rpc.get_worker_info().name not in names:
            deliver(group, tickets, objects)

    held.__module__, held.__qualname__ = gathering.__name__, "_deliver"
    monkeypatch.setattr(gathering, "_deliver", held)


def test_the_time_of_a_call_also_ends_on_the_way(workers, monkeypatch):
    hold_back(monkeypatch, {"c"})

    def gather(agent):
        try:
            return len(_all_gather(large(agent), timeout=0.5 if agent.name == "c" else SOON))
        except RpcTimeoutError as error:
            return str(error)

    found = everywhere(workers, gather)
    assert WAITS in found.pop(2)
    assert found == [len(NAMES)] * 5 and forgotten(workers)


def test_a_coroutine_waits_too_and_may_be_cancelled(workers, monkeypatch):
    hold_back(monkeypatch, {"d"})

    async def gather(agent):
        waiting = asyncio.ensure_future(_all_gather_async(large(agent)))
        if agent.name == "d":
            done, _ = await asyncio.wait([waiting], timeout=0.5)
            assert not done and waiting.cancel()
            return await asyncio.gather(waiting, return_exceptions=True)
        return len(await waiting)

    found = everywhere(workers, lambda agent: asyncio.run(gather(agent)))
    assert isinstance(found.pop(3)[0], asyncio.CancelledError)
    assert found == [len(NAMES)] * 5 and forgotten(workers)


def test_a_member_is_told_why_objects_cannot_come(workers, monkeypatch):
    deliver = gathering._deliver

    def failing(group, tickets, objects):
        if rpc.get_worker_info().name == "e":
            raise MemoryError("no room")
        deliver(group, tickets, objects)

    failing.__module__, failing.__qualname__ = gathering.__name__, "_deliver"
    monkeypatch.setattr(gathering, "_deliver", failing)

    def gather(agent):
        try:
            return len(_all_gather(large(agent)))
        except MemoryError as error:
            return str(error)

    assert "no room" in everywhere(workers, gather)[4]


def test_the_loss_of_the_leader_ends_the_wait(workers, monkeypatch):
    hold_back(monkeypatch, {"b"})

    def gather(agent):
        try:
            return len(_all_gather(large(agent)))
        except WorkerLostError as error:
            return str(error)

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(everywhere, workers, gather)
        coming = workers[1].part(Gathering).coming
        until(lambda: any(WAITS in str(call.what) for call in workers[1].caller.table.calls.values()))
        assert coming.expected
        workers[0].close()
        assert "'a'" in found.result(SOON)[1]
