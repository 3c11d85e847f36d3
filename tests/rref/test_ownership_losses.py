"""The ownership machine when things overtake one another, and when workers are lost in each state."""

import pytest
from helpers.ownership_table import Table
from telegrad.rref import protocol as p
from telegrad.rref.ids import GlobalId, WorkerKey

OWNER, USER, OTHER, THIRD = (WorkerKey(rank) for rank in range(4))


@pytest.fixture
def table():
    return Table(OWNER, USER, OTHER, THIRD)


# -- what overtakes the creating call


def overtaken(table):
    """USER creates on OWNER and passes the reference to OTHER, whose request arrives before the creating call."""
    mine, transfer = table.calls(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    table.passes(p.Register)
    assert table.kinds() == []
    return mine, his, transfer


def test_a_request_that_overtakes_the_creating_call_waits_for_it(table):
    mine, his, transfer = overtaken(table)
    assert table.arrives(USER, transfer)
    table.settle()
    assert table.confirmed(OTHER) == [his.fork_id]
    table.handle(USER, p.Delivered(transfer))
    table.drop(USER, mine)
    table.drop(OTHER, his)
    table.settle()
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_request_is_rejected_when_the_creating_call_turns_out_not_to_come(table):
    mine, his, transfer = overtaken(table)
    table.handle(USER, p.NotDelivered(transfer))
    table.settle()
    assert "never created" in table.failures(OTHER)[his.fork_id]
    assert "worker 1" in table.failures(OTHER)[his.fork_id]
    assert mine.fork_id in table.failures(USER)
    later = table.gives(USER, THIRD, mine)  # the failed fork still travels, and fails there
    table.settle()
    assert later.fork_id in table.failures(THIRD)
    for key, reference in ((USER, mine), (OTHER, his), (THIRD, later)):
        table.drop(key, reference)
    table.assert_empty()


def test_a_request_is_rejected_when_the_creator_is_lost_first(table):
    _mine, his, transfer = overtaken(table)
    table.dies(USER)
    assert not table.arrives(USER, transfer)
    table.settle()
    assert "worker 1 was lost before its creating call arrived" in table.failures(OTHER)[his.fork_id]
    table.drop(OTHER, his)
    table.assert_empty()


def test_a_reference_given_to_the_owner_before_it_was_created(table):
    mine, transfer = table.calls(USER, OWNER)
    home = table.gives(USER, OWNER, mine)
    assert table.confirmed(OWNER) == []
    onward = table.gives(OWNER, OTHER, home)  # the owner cannot vouch for it yet
    table.settle()
    assert table.confirmed(OTHER) == []
    table.drop(OWNER, home)
    assert table.arrives(USER, transfer)
    table.settle()
    assert table.confirmed(OTHER) == [onward.fork_id]
    table.handle(USER, p.Delivered(transfer))
    table.drop(USER, mine)
    table.drop(OTHER, onward)
    table.settle()
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_reference_given_to_the_owner_fails_when_it_is_never_created(table):
    mine, transfer = table.calls(USER, OWNER)
    home = table.gives(USER, OWNER, mine)
    again = table.gives(OWNER, OWNER, home)
    table.handle(USER, p.NotDelivered(transfer))
    table.settle()
    assert set(table.failures(OWNER)) == {home.fork_id, again.fork_id}
    for key, reference in ((USER, mine), (OWNER, home), (OWNER, again)):
        table.drop(key, reference)
    assert table.freed(OWNER) == []
    table.assert_empty()


# -- losses


def test_the_forks_of_a_lost_user_are_forgotten(table):
    mine = table.creates(USER, OWNER)
    table.gives(USER, OTHER, mine)
    table.settle()
    table.dies(USER)
    assert table.freed(OWNER) == []
    table.dies(OTHER)
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_request_after_the_death_of_the_parents_holder_fails_by_name(table):
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    request = table.flying.pop()
    table.dies(USER)
    assert table.freed(OWNER) == [mine.rref_id]
    table.handle(OWNER, p.Received(OTHER, request[2]))
    table.settle()
    assert "worker 1, which passed it to you, was lost" in table.failures(OTHER)[his.fork_id]
    third = table.gives(OTHER, THIRD, his)
    table.settle()
    assert third.fork_id in table.failures(THIRD)
    table.drop(OTHER, his)
    table.drop(THIRD, third)
    table.assert_empty()


def test_a_request_after_the_death_of_the_parents_holder_is_accepted_while_the_value_lives(table):
    mine = table.own(OWNER)
    users = table.gives(OWNER, USER, mine)
    his = table.gives(USER, OTHER, users)
    request = table.flying.pop()
    table.dies(USER)
    table.handle(OWNER, p.Received(OTHER, request[2]))
    table.settle()
    assert table.confirmed(OTHER) == [his.fork_id]
    table.drop(OWNER, mine)
    table.drop(OTHER, his)
    table.assert_empty()


def test_a_lost_receiver_frees_what_was_on_its_way(table):
    mine = table.creates(USER, OWNER)
    table.sends(USER, OTHER, mine)
    table.drop(USER, mine)
    own = table.own(OWNER)
    flying = table.sends(OWNER, OTHER, own)
    table.drop(OWNER, own)
    table.handle(OWNER, p.NotDelivered(flying))
    table.dies(OTHER)
    table.settle()
    assert set(table.freed(OWNER)) == {mine.rref_id, own.rref_id}
    table.assert_empty()


def test_everything_fails_by_name_when_the_owner_is_lost(table):
    waiting, _ = table.calls(USER, OWNER)
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)  # its request is on its way
    flying = table.sends(USER, THIRD, mine)  # arrives after the loss
    table.dies(OWNER)
    assert table.arrives(USER, flying)
    table.settle()
    late = table.adopted(flying)
    after, _ = table.calls(USER, OWNER)
    for key, reference in ((USER, waiting), (USER, mine), (OTHER, his), (THIRD, late), (USER, after)):
        assert "worker 0, was lost" in table.failures(key)[reference.fork_id]
        table.drop(key, reference)
    table.assert_empty()


def test_a_failed_handle_fails_once(table):
    mine, his, transfer = overtaken(table)
    table.handle(USER, p.NotDelivered(transfer))
    table.settle()
    table.dies(OWNER)
    assert sum(isinstance(each, p.ForkFailed) for each in table.instructions[OTHER]) == 1
    table.drop(USER, mine)
    table.drop(OTHER, his)
    table.assert_empty()


def test_messages_and_transfers_of_the_lost_are_ignored(table):
    mine = table.own(OWNER)
    transfer = table.sends(OWNER, OTHER, mine)
    for key in (USER, OTHER, THIRD):
        table.handle(key, p.WorkerLost(OWNER))
    assert not table.arrives(OWNER, transfer)
    table.handle(OTHER, p.Received(OWNER, p.Cancel(0)))
    assert table.kinds() == []
    table.handle(OTHER, p.WorkerLost(OTHER))  # said of oneself: the agent closes, there is nothing to do here
    table.drop(OWNER, mine)
    table.handle(OWNER, p.WorkerLost(OTHER))
    table.assert_empty()


def test_a_request_of_a_lost_worker_registers_nothing(table):
    mine = table.own(OWNER)
    table.handle(OWNER, p.WorkerLost(OTHER))
    table.handle(OWNER, p.Received(OTHER, p.Register(mine.rref_id, GlobalId(USER.number, 0, 1))))
    assert table.machines[OWNER].owned.forks_of(mine.rref_id) == {mine.fork_id: OWNER}
    table.drop(OWNER, mine)
    table.assert_empty()


def test_sending_to_the_lost_keeps_nothing_waiting(table):
    mine = table.creates(USER, OWNER)
    own = table.own(OWNER)
    table.dies(OTHER)
    table.sends(USER, OTHER, mine)
    table.sends(OWNER, OTHER, own)
    table.drop(USER, mine)
    table.drop(OWNER, own)
    table.settle()
    assert set(table.freed(OWNER)) == {mine.rref_id, own.rref_id}
    table.assert_empty()


def test_another_incarnation_is_another_worker(table):
    mine = table.creates(USER, OWNER)
    table.dies(USER)
    again = WorkerKey(USER.number, 1)
    table.join(again)
    other = table.creates(again, OWNER)
    assert other.rref_id != mine.rref_id
    table.drop(again, other)
    table.assert_empty()
    assert str(other.rref_id) == "1.1/0"
    assert str(mine.rref_id) == "1/0"
