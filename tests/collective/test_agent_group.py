"""Collectives over the agents' lanes give NumPy's results, on every rank to the bit, for any number of ranks."""

import functools
import itertools
import threading

import numpy as np
import pytest
from telegrad.base.errors import CollectiveError, CollectiveTimeoutError, WorkerLostError
from telegrad.collective import ReduceOp, agent_group, shared_memory
from telegrad.collective.agent_group import MOST_AHEAD, SMALL_ARRAY_BYTES
from telegrad.collective.mailbox import Mailbox
from telegrad.collective.reduction import FUNCTIONS, combine
from telegrad.collective.shared_memory import open_shared

LARGE = SMALL_ARRAY_BYTES // 8 + 3  # elements of float64


def array(index, size, dtype=np.float64):
    return (np.random.default_rng(index).standard_normal(size) * 10).astype(dtype)


def raise_errors(results):
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


@pytest.mark.parametrize("ranks", [1, 2, 3, 5], indirect=True)
@pytest.mark.parametrize("size", [0, 1, 7, LARGE])
def test_all_reduce_is_the_sum_in_the_order_of_the_ranks(ranks, size):
    groups = ranks.groups()

    def body(group):
        row = array(group.index, size)
        group.all_reduce(group.begin("all_reduce", None), row, ReduceOp.SUM)
        return row

    expected = functools.reduce(np.add, [array(index, size) for index in range(len(groups))])
    for row in raise_errors(ranks.run(groups, body)):
        assert np.array_equal(row, expected)


@pytest.mark.parametrize("ranks", [3], indirect=True)
@pytest.mark.parametrize("op", ReduceOp)
def test_every_operation(ranks, op):
    dtype = np.int64 if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) else np.float64

    def body(group):
        row, kept = array(group.index, 6, dtype), array(group.index, 6, dtype)
        group.all_reduce(group.begin("all_reduce", None), row, op)
        at_1 = group.reduce(group.begin("reduce", None), kept, op, 1)
        assert np.array_equal(kept, array(group.index, 6, dtype)) and (at_1 is None) == (group.index != 1)
        mine = group.reduce_scatter(group.begin("reduce_scatter", None), np.split(kept, 3), op)
        return row, at_1, mine

    expected = functools.reduce(FUNCTIONS[op], [array(index, 6, dtype) for index in range(3)])
    if op is ReduceOp.AVG:
        expected = expected / 3
    results = raise_errors(ranks.run(ranks.groups(), body))
    assert all(np.array_equal(row, expected) for row, _, _ in results)
    assert np.array_equal(results[1][1], expected)
    assert np.array_equal(np.concatenate([mine for _, _, mine in results]), expected)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6], indirect=True)
def test_broadcast_from_everybody(ranks):
    groups = ranks.groups()

    def body(group):
        given = {"from": group.index}
        return [group.broadcast(group.begin("broadcast", None), given, source) for source in range(group.size())]

    for result in raise_errors(ranks.run(groups, body)):
        assert result == [{"from": source} for source in range(len(groups))]


@pytest.mark.parametrize("ranks", [4], indirect=True)
def test_parts_may_differ_in_size(ranks):
    def body(group):
        own = np.full(group.index, group.index)
        gathered = group.all_gather(group.begin("all_gather", None), own)
        at_2 = group.gather(group.begin("gather", None), own, 2)
        given = group.all_to_all(group.begin("all_to_all", None), [np.full(to, group.index) for to in range(4)])
        parts = [[number] * number for number in range(4)] if group.index == 3 else None
        return gathered, at_2, given, group.scatter(group.begin("scatter", None), parts, 3)

    for index, (gathered, at_2, given, part) in enumerate(raise_errors(ranks.run(ranks.groups(), body))):
        assert [row.tolist() for row in gathered] == [[number] * number for number in range(4)]
        assert at_2 is None if index != 2 else [row.tolist() for row in at_2] == [[n] * n for n in range(4)]
        assert [row.tolist() for row in given] == [[source] * index for source in range(4)]
        assert part == [index] * index


@pytest.mark.parametrize("ranks", [4], indirect=True)
def test_groups_side_by_side_do_not_disturb_one_another(ranks):
    pairs = {(0, 1): "low", (2, 3): "high", (0, 3): "ends"}
    groups = [group for members, name in pairs.items() for group in ranks.groups(members, name)]

    def body(group):
        results = []
        for number in range(20):
            row = np.array([100.0 * group.ranks[group.index] + number])
            group.all_reduce(group.begin("all_reduce", None), row, ReduceOp.SUM)
            results.append(row[0])
        return results

    for group, result in zip(groups, raise_errors(ranks.run(groups, body)), strict=True):
        assert result == [100.0 * sum(group.ranks) + 2 * number for number in range(20)]


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_work_in_the_background_keeps_its_order(ranks):
    def body(group):
        rows = [array(number + group.index, 5) for number in range(30)]
        work = []
        for row in rows:
            call = group.begin("all_reduce", None)
            work.append(group.run(lambda row=row, call=call: group.all_reduce(call, row, ReduceOp.SUM), True))
        for each in work:
            each.wait(60)
            assert each.is_completed() and each.get_future() is each
        return rows

    for rows in raise_errors(ranks.run(ranks.groups(), body)):
        for number, row in enumerate(rows):
            assert np.array_equal(row, array(number, 5) + array(number + 1, 5))


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_messages_of_a_tag_come_in_order(ranks):
    def body(group):
        if group.index == 0:
            for number in range(10):
                group.send(np.array([number]), 1, tag=number % 2)
            return None
        return [int(group.receive(0, tag)[0]) for tag in [1] * 5 + [0] * 5]

    assert raise_errors(ranks.run(ranks.groups(), body))[1] == [1, 3, 5, 7, 9, 0, 2, 4, 6, 8]


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_a_sender_is_not_further_ahead_than_a_bound(ranks, until):
    first, second = ranks.groups()
    sent = []

    def send():
        for number in range(MOST_AHEAD + 50):
            first.send(number, 1, 0)
            sent.append(number)

    thread = threading.Thread(target=send)
    thread.start()
    until(lambda: len(sent) > MOST_AHEAD)
    assert len(sent) <= MOST_AHEAD + 1
    assert [second.receive(0, 0) for _ in range(MOST_AHEAD + 50)] == list(range(MOST_AHEAD + 50))
    thread.join()


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_different_calls_are_an_error_that_names_both(ranks):
    calls = {0: ("all_reduce", "float32[3], SUM"), 1: ("all_gather", "float32")}
    errors = ranks.run(ranks.groups(), lambda group: group.all_gather(group.begin(*calls[group.index]), None))
    for error in errors:
        assert isinstance(error, CollectiveError)
        assert "all_reduce(float32[3], SUM)" in str(error) and "all_gather(float32)" in str(error)
        assert "rank 0 ('rank0')" in str(error) and "rank 1 ('rank1')" in str(error)


@pytest.mark.parametrize("ranks", [4], indirect=True)
def test_a_timeout_names_who_did_not_come(ranks):
    groups = ranks.groups(seconds=0.3)
    present = [groups[0], groups[2]]
    for error in ranks.run(present, lambda group: group.all_gather(group.begin("barrier", None), None)):
        assert isinstance(error, CollectiveTimeoutError) and isinstance(error, TimeoutError)
        assert "barrier of group 'test' waited 0.3 s in vain for rank 1 ('rank1'), rank 3 ('rank3')" in str(error)


@pytest.mark.parametrize("ranks", [3], indirect=True)
def test_a_lost_rank_ends_the_wait_at_once(ranks):
    groups = ranks.groups()
    ranks.agents[2].close("it ends")

    def body(group):
        group.all_gather(group.begin("barrier", None), None)

    for error in ranks.run(groups[:2], body):
        assert isinstance(error, WorkerLostError) and error.worker == "rank2"


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_nothing_is_left_in_the_mailboxes(ranks):
    groups = ranks.groups()
    raise_errors(ranks.run(groups, lambda group: group.all_gather(group.begin("barrier", None), None)))
    groups[0].send("never taken", 1, 0)
    with pytest.raises(CollectiveTimeoutError):
        ranks.groups(name="other", seconds=0.05)[0].receive(1, 0)
    for group in groups:
        group.close()
    for agent in ranks.agents:
        mailbox = agent.part(Mailbox)
        assert not mailbox._arrived and not mailbox._awaited


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_a_message_that_comes_after_its_group_was_destroyed_is_not_kept(ranks, until):
    one, two = ranks.groups()
    two.close()
    one.send("too late", 1, 0)
    until(lambda: one._untaken[0][1].done())
    assert not ranks.agents[1].part(Mailbox)._arrived


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_a_thread_that_waits_in_a_group_is_let_go_when_that_is_destroyed(ranks, until):
    one, _ = ranks.groups()
    mailbox = ranks.agents[0].part(Mailbox)
    waiting = ranks.run_in_background([one], lambda group: group.receive(1, 0))
    until(lambda: mailbox._awaited)
    one.close()
    (error,) = waiting()
    assert isinstance(error, CollectiveError) and "group 'test' was destroyed" in str(error)
    assert not mailbox._awaited


# -- large arrays


@pytest.fixture(params=["one host", "several hosts", "not permitted"])
def host(request, monkeypatch):
    """Place of the ranks, which decides whether they can map one another's memory."""
    if request.param == "several hosts":
        monkeypatch.setattr(agent_group, "host_identity", lambda: threading.current_thread().name)
    if request.param == "not permitted":
        opened = itertools.count()
        monkeypatch.setattr(
            agent_group, "open_shared", lambda address: None if next(opened) == 1 else open_shared(address)
        )
    monkeypatch.setattr(shared_memory, "SLICE_BYTES", 3 * SMALL_ARRAY_BYTES + 32)
    return request.param


@pytest.mark.parametrize("ranks", [2, 3, 4], indirect=True)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "complex128", "uint16"])
def test_large_arrays(ranks, host, dtype):
    op = ReduceOp.SUM if dtype == "uint16" else ReduceOp.AVG if dtype[0] in "fc" else ReduceOp.MAX
    sizes = [SMALL_ARRAY_BYTES + 1, 3 * SMALL_ARRAY_BYTES + 31, 1_000_003]
    groups = ranks.groups()

    def body(group):
        rows = [array(group.index, size // np.dtype(dtype).itemsize, dtype) for size in sizes]
        for row in rows:
            group.all_reduce(group.begin("all_reduce", None, row.nbytes), row, op)
        assert (group._shared is not None) == (host == "one host")
        return rows

    for rows in raise_errors(ranks.run(groups, body)):
        for row, size in zip(rows, sizes, strict=True):
            given = [array(index, size // np.dtype(dtype).itemsize, dtype) for index in range(len(groups))]
            assert np.array_equal(row, combine(given, op))


@pytest.mark.parametrize("ranks", [2], indirect=True)
def test_large_arrays_in_the_background_keep_their_order(ranks, host):
    def body(group):
        rows = [array(number + group.index, LARGE) for number in range(12)]
        work = []
        for row in rows:
            call = group.begin("all_reduce", None, row.nbytes)
            work.append(group.run(lambda row=row, call=call: group.all_reduce(call, row, ReduceOp.SUM), True))
        for each in work:
            each.wait(60)
        return rows

    for rows in raise_errors(ranks.run(ranks.groups(), body)):
        for number, row in enumerate(rows):
            assert np.array_equal(row, array(number, LARGE) + array(number + 1, LARGE))


@pytest.mark.parametrize("ranks", [3], indirect=True)
def test_large_arrays_after_calls_that_failed(ranks, host):
    groups = ranks.groups()

    def reduce(group, like=None):
        row = array(group.index, LARGE)
        group.all_reduce(group.begin("all_reduce", like, row.nbytes), row, ReduceOp.SUM)
        return row

    raise_errors(ranks.run(groups, reduce))
    for error in ranks.run(groups, lambda group: reduce(group, f"like {group.index}")):
        assert isinstance(error, CollectiveError) and "all_reduce(like" in str(error)
    if host == "one host":
        groups[1]._shared._slices += 3  # as if it had failed in the middle of an array
    expected = array(0, LARGE) + array(1, LARGE) + array(2, LARGE)
    for row in raise_errors(ranks.run(groups, reduce)):
        assert np.array_equal(row, expected)


@pytest.fixture
def leaves(monkeypatch):
    """``leaves(group, then)``: let that member go away, after ``then()``, when its part of an array is in shared memory."""
    reduce_slices = shared_memory.SharedReduction._reduce_slices

    def arm(group, then):
        def leave(shared, array, op, check):
            if shared is group._shared:
                then()
                shared._await(lambda: [0], check)
            reduce_slices(shared, array, op, check)

        monkeypatch.setattr(shared_memory.SharedReduction, "_reduce_slices", leave)

    return arm


def reduce_large(group):
    row = array(group.index, LARGE)
    group.all_reduce(group.begin("all_reduce", None, row.nbytes), row, ReduceOp.SUM)
    return row


@pytest.mark.parametrize("ranks", [3], indirect=True)
@pytest.mark.parametrize("lost", [False, True])
def test_a_rank_that_goes_away_in_a_large_array_is_named(ranks, leaves, lost):
    groups = ranks.groups(seconds=2.0)
    groups[2].timeout = 20.0
    raise_errors(ranks.run(groups, reduce_large))
    leaves(groups[2], lambda: ranks.agents[2].close("it ends") if lost else None)
    for error in ranks.run(groups, reduce_large)[:2]:
        assert isinstance(error, WorkerLostError if lost else CollectiveTimeoutError) and "rank2" in str(error)
