"""A collective that fails on one rank fails on all that wait in it, at once, with an error that names the cause."""

import random
import threading

import numpy as np
import pytest
from telegrad.base.errors import CollectiveError, CollectiveTimeoutError, WorkerLostError
from telegrad.collective import ReduceOp, agent_group
from telegrad.collective.failures import Failures
from telegrad.collective.mailbox import Mailbox

SMALL, LARGE = 10, 20_000  # elements of float64


def reduce(group, size=SMALL, like=None):
    row = np.full(size, float(group.index))
    group.all_reduce(group.begin("all_reduce", like, row.nbytes), row, ReduceOp.SUM)
    assert (row == sum(range(group.size()))).all()


def broadcast(group, source=0):
    return group.broadcast(group.begin("broadcast", f"from {source}"), group.index, source)


def barrier(group):
    group.all_gather(group.begin("barrier", None), None)


def gather(group):
    return group.gather(group.begin("gather", None), group.index, 0)


def works(ranks, groups):
    """The group works, and nothing is left of what has failed."""
    for body in (barrier, reduce, lambda group: reduce(group, LARGE), broadcast, barrier):
        assert not [result for result in ranks.run(groups, body) if isinstance(result, Exception)]
    for agent in ranks.agents:
        mailbox = agent.part(Mailbox)
        assert not mailbox._arrived and not mailbox._awaited and not agent.part(Failures)._open


@pytest.mark.parametrize("ranks", [8], indirect=True)
@pytest.mark.parametrize("absent", [0, 4, 6])
def test_a_timeout_in_a_tree_names_who_did_not_come(ranks, absent, until, monkeypatch):
    for name in ("QUIET_SECONDS", "WATCH_SECONDS"):  # from one look at the deadline to the next
        monkeypatch.setattr(agent_group, name, 0.1)
    groups = ranks.groups()
    present = [group for group in groups if group.index != absent]
    stuck = {0: [1, 2, 3, 4, 5, 6, 7], 4: [5, 6, 7], 6: [7]}[absent]
    waiting = [agent.part(Failures)._open for agent in ranks.agents]

    def expire():
        until(lambda: [index for index, calls in enumerate(waiting) if calls] == stuck)
        for index in stuck:
            for call in list(waiting[index].values()):
                call.deadline = 0.0

    expiring = threading.Thread(target=expire)
    expiring.start()
    results = ranks.run(present, broadcast)
    expiring.join()
    for group, result in zip(present, results, strict=True):
        if group.index not in stuck:
            assert result == 0  # those that got it are through
            continue
        assert isinstance(result, CollectiveTimeoutError)
        assert f"in vain for rank {absent} ('rank{absent}'):" in str(result)
    late = ranks.run([groups[absent]], broadcast)[0]
    assert late == 0 or (isinstance(late, CollectiveTimeoutError) and f"rank {absent}" in str(late))  # if it has heard
    works(ranks, groups)


@pytest.mark.parametrize("ranks", [4], indirect=True)
def test_an_error_on_one_rank_is_told_to_all(ranks):
    groups = ranks.groups()
    given = {2: threading.Lock()}  # what cannot be sent

    def body(group):
        group.all_gather(group.begin("all_gather", None), given.get(group.index, 1))

    results = ranks.run(groups, body)
    for index in (0, 1, 3):
        assert isinstance(results[index], CollectiveError)
        assert "rank 2 ('rank2') gave up all_gather of group 'test': SerializationError" in str(results[index])
    assert "lock" in str(results[2])
    works(ranks, groups)


@pytest.mark.parametrize("ranks", [4], indirect=True)
def test_who_gives_up_is_named(ranks):
    groups = ranks.groups()

    def body(group):
        call = group.begin("all_reduce", None, 80)
        if group.index == 3:
            group.give_up(call, ValueError("no gradient"))
        else:
            group.all_reduce(call, np.zeros(10), ReduceOp.SUM)

    for error in ranks.run(groups, body)[:3]:
        assert isinstance(error, CollectiveError) and "rank 3 ('rank3') gave up all_reduce" in str(error)
        assert "ValueError: no gradient" in str(error)
    works(ranks, groups)


@pytest.mark.parametrize("ranks", [4], indirect=True)
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize(
    ("other", "name"),
    [
        (barrier, "barrier"),
        (broadcast, "broadcast(from 0)"),
        (lambda group: broadcast(group, 1), "broadcast(from 1)"),
        (gather, "gather"),
        (lambda group: reduce(group, LARGE, "large"), "all_reduce(large)"),
        (lambda group: reduce(group, SMALL + 1, "longer"), "all_reduce(longer)"),
    ],
)
def test_an_all_reduce_where_another_rank_calls_something_else(ranks, other, name, mapped):
    groups = ranks.groups()
    if mapped:
        assert ranks.run(groups, reduce) == [None] * 4
    results = ranks.run(groups, lambda group: other(group) if group.index == 1 else reduce(group))
    for index in (0, 2, 3):
        assert isinstance(results[index], CollectiveError), results
        assert f"called {name}" in str(results[index]) and "called all_reduce" in str(results[index])
        assert "rank 1 ('rank1')" in str(results[index])
    works(ranks, groups)


@pytest.mark.parametrize("ranks", [2, 4], indirect=True)
def test_messages_that_nobody_wants_show_different_calls(ranks):
    """Each is the source of its broadcast, and waits for nobody: then a later collective tells, when the message is there."""
    groups = ranks.groups()
    results = ranks.run(groups, lambda group: broadcast(group, min(group.index, 1)))
    while not (errors := [result for result in results if isinstance(result, Exception)]):
        results = ranks.run(groups, barrier)
    for error in errors:
        assert isinstance(error, CollectiveError)
        assert "called broadcast(from 0)" in str(error) and "called broadcast(from 1)" in str(error)


@pytest.mark.parametrize("ranks", [3], indirect=True)
def test_an_error_that_the_others_have_raised_does_not_fail_the_next_collective(ranks, monkeypatch):
    """The source of a broadcast waits for nobody, and news of the others' errors may come to it later than their messages."""
    groups, over = ranks.groups(), threading.Event()

    def body(group):
        if group.index == 1:
            broadcast(group, 1)
            over.set()
        elif over.wait(20):
            reduce(group)

    mailbox = ranks.agents[1].part(Mailbox)
    with monkeypatch.context() as held:
        held.setattr(mailbox, "fail", lambda *_: True)  # news of errors
        while not mailbox.waiting("test"):  # they may have met the source's messages before they sent it their own
            over.clear()
            results = ranks.run(groups, body)
            assert [isinstance(result, CollectiveError) for result in results] == [True, False, True]
    works(ranks, groups)


@pytest.mark.parametrize("ranks", [4], indirect=True)
def test_a_lost_source_is_named_at_the_ends_of_a_tree(ranks):
    groups = ranks.groups()
    began = threading.Barrier(4)

    def body(group):
        began.wait(10)
        if group.index == 0:
            ranks.agents[0].close("it ends")
            return
        broadcast(group)

    for error in ranks.run(groups, body)[1:]:
        assert isinstance(error, WorkerLostError) and error.worker == "rank0"


@pytest.mark.parametrize("ranks", [4], indirect=True)
@pytest.mark.parametrize(
    "body", [barrier, reduce, lambda group: broadcast(group, 1)], ids=["barrier", "reduce", "tree"]
)
def test_of_several_lost_ranks_the_first_is_named(ranks, body, until):
    """Another has heard of it, and left, before this one looks."""
    groups = ranks.groups()
    assert ranks.run(groups, reduce) == [None] * 4
    for rank in (2, 1):
        ranks.agents[rank].close("it ends")
        until(lambda rank=rank: all(ranks.agents[other].peers.at(rank).gone for other in (0, 3)))
    for error in ranks.run([groups[0], groups[3]], body):
        assert isinstance(error, WorkerLostError) and error.worker == "rank2"


@pytest.mark.parametrize("ranks", [3], indirect=True)
def test_a_rank_whose_mapping_failed_maps_again(ranks):
    groups = ranks.groups()
    assert ranks.run(groups, reduce) == [None] * 3
    groups[1]._shared = None
    former = groups[0]._shared
    assert ranks.run(groups, reduce) == [None] * 3
    assert groups[0]._shared is not former
    works(ranks, groups)


@pytest.mark.parametrize("ranks", [4], indirect=True)
@pytest.mark.parametrize("seed", range(5))
def test_random_programs_with_failures(ranks, seed):
    """Whatever fails where: each rank gets the result or the cause, and all are in step for what follows."""
    draw = random.Random(seed)
    bodies = [reduce, lambda group: reduce(group, LARGE), broadcast, barrier, gather]
    program = [(draw.choice(bodies), draw.choice([None, *range(4)])) for _ in range(12)]
    groups = ranks.groups()

    def body(group):
        for number, (collective, failing) in enumerate(program):
            try:
                if group.index == failing:
                    group.give_up(group.begin("all_reduce", None), ValueError(f"number {number}"))
                else:
                    collective(group)
            except CollectiveError as error:
                assert f"rank {failing} ('rank{failing}') gave up" in str(error) and f"number {number}" in str(error)

    assert ranks.run(groups, body) == [None] * 4
    works(ranks, groups)


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("program", ["all_reduce", "backward", "pipeline"])
def test_a_killed_rank_is_named_at_once(forked_job, program):
    killed = forked_job("killed", 4, [program])
    killed.wait(60, codes=[0, 0, -9, 0])
    for rank in [0] if program == "pipeline" else [0, 1, 3]:
        assert "heard of rank2:" in killed.output(rank), killed.outputs()
