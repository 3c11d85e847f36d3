"""The ownership machine when things overtake one another, and when workers are lost in each state."""

import pytest
from telegrad.rref import protocol as p
from telegrad.rref.ids import GlobalId, WorkerKey
from telegrad.testing.table import Table

OWNER, USER, OTHER, THIRD = (WorkerKey(rank) for rank in range(4))


@pytest.fixture
def table():
    return Table(OWNER, USER, OTHER, THIRD)


# -- what overtakes the creating call


def overtaken(table):
    """USER creates on OWNER and passes the reference to OTHER, whose claim arrives before the creating call."""
    rref_id, fork_id, carrier = table.machines[USER].create(OWNER)
    his = table.gives(USER, OTHER, (rref_id, fork_id))
    table.passes(p.Claim)
    assert table.kinds() == []
    return (rref_id, fork_id), his, carrier


def test_a_claim_that_overtakes_the_creating_call_waits_for_it(table):
    mine, his, carrier = overtaken(table)
    assert table.machines[OWNER].may_park(mine[0], USER)
    assert not table.machines[OWNER].may_park(mine[0], OTHER)
    assert table.arrives(USER, carrier)
    table.settle()
    assert table.confirmed(OTHER) == [his[1]]
    table.machines[USER].confirmed(mine[1])
    table.drop(USER, mine)
    table.drop(OTHER, his)
    table.settle()
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_a_claim_is_rejected_when_the_creating_call_turns_out_not_to_come(table):
    mine, his, carrier = overtaken(table)
    table.machines[USER].not_delivered(OWNER, carrier.number)
    table.settle()
    assert "never created" in table.failures(OTHER)[his[1]]
    assert "worker 1" in table.failures(OTHER)[his[1]]
    assert mine[1] in table.failures(USER)
    later = table.gives(USER, THIRD, mine)  # the failed handle still travels, and fails there
    table.settle()
    assert later[1] in table.failures(THIRD)
    for key, reference in ((USER, mine), (OTHER, his), (THIRD, later)):
        table.drop(key, reference)
    table.assert_empty()


def test_a_claim_is_rejected_when_the_creator_is_lost_first(table):
    _mine, his, carrier = overtaken(table)
    table.dies(USER)
    assert not table.arrives(USER, carrier)
    table.settle()
    assert "worker 1 was lost before its creating call arrived" in table.failures(OTHER)[his[1]]
    table.drop(OTHER, his)
    table.assert_empty()


def test_a_reference_that_comes_home_before_it_was_created(table):
    rref_id, fork_id, carrier = table.machines[USER].create(OWNER)
    home = table.gives(USER, OWNER, (rref_id, fork_id))
    assert table.confirmed(OWNER) == []
    onward = table.gives(OWNER, OTHER, home)  # the owner cannot vouch for it yet
    table.settle()
    assert table.confirmed(OTHER) == []
    table.drop(OWNER, home)
    assert table.arrives(USER, carrier)
    table.settle()
    assert table.confirmed(OTHER) == [onward[1]]
    table.machines[USER].confirmed(fork_id)
    table.drop(USER, (rref_id, fork_id))
    table.drop(OTHER, onward)
    table.settle()
    assert table.freed(OWNER) == [rref_id]
    table.assert_empty()


def test_a_homecoming_fails_when_the_reference_is_never_created(table):
    rref_id, fork_id, carrier = table.machines[USER].create(OWNER)
    home = table.gives(USER, OWNER, (rref_id, fork_id))
    again = table.gives(OWNER, OWNER, home)
    table.machines[USER].not_delivered(OWNER, carrier.number)
    table.settle()
    assert set(table.failures(OWNER)) == {home[1], again[1]}
    for key, reference in ((USER, (rref_id, fork_id)), (OWNER, home), (OWNER, again)):
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
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_a_claim_after_the_forkers_death_fails_by_name(table):
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    claim = table.kinds() and table.flying.pop()
    table.dies(USER)
    assert table.freed(OWNER) == [mine[0]]
    table.machines[OWNER].receive(OTHER, claim[2])
    table.settle()
    assert "worker 1, which passed it to you, was lost" in table.failures(OTHER)[his[1]]
    third = table.gives(OTHER, THIRD, his)
    table.settle()
    assert third[1] in table.failures(THIRD)
    table.drop(OTHER, his)
    table.drop(THIRD, third)
    table.assert_empty()


def test_a_claim_after_the_forkers_death_is_accepted_while_the_value_lives(table):
    mine = table.machines[OWNER].own()
    users = table.gives(OWNER, USER, mine)
    his = table.gives(USER, OTHER, users)
    claim = table.kinds() and table.flying.pop()
    table.dies(USER)
    table.machines[OWNER].receive(OTHER, claim[2])
    table.settle()
    assert table.confirmed(OTHER) == [his[1]]
    table.drop(OWNER, mine)
    table.drop(OTHER, his)
    table.assert_empty()


def test_a_lost_receiver_frees_what_was_on_its_way(table):
    mine = table.creates(USER, OWNER)
    table.sends(USER, OTHER, mine)
    table.drop(USER, mine)
    own = table.machines[OWNER].own()
    table.sends(OWNER, OTHER, own)
    table.drop(OWNER, own)
    table.machines[OWNER].not_delivered(OTHER, 0)
    table.dies(OTHER)
    table.settle()
    assert set(table.freed(OWNER)) == {mine[0], own[0]}
    table.assert_empty()


def test_everything_fails_by_name_when_the_owner_is_lost(table):
    waiting = table.machines[USER].create(OWNER)[:2]
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)  # its claim is on its way
    flying = table.sends(USER, THIRD, mine)  # arrives after the loss
    table.dies(OWNER)
    assert table.arrives(USER, flying)
    table.settle()
    late = (mine[0], flying.entries[0].fork_id)
    after = table.machines[USER].create(OWNER)[:2]
    table.collect()
    for key, reference in ((USER, waiting), (USER, mine), (OTHER, his), (THIRD, late), (USER, after)):
        assert "worker 0, was lost" in table.failures(key)[reference[1]]
        table.drop(key, reference)
    table.assert_empty()


def test_a_failed_handle_fails_once(table):
    mine, his, carrier = overtaken(table)
    table.machines[USER].not_delivered(OWNER, carrier.number)
    table.settle()
    table.dies(OWNER)
    table.collect()
    assert sum(isinstance(said, p.Fail) for said in table.said[OTHER]) == 1
    table.drop(USER, mine)
    table.drop(OTHER, his)
    table.assert_empty()


def test_messages_and_carriers_of_the_lost_are_ignored(table):
    mine = table.machines[OWNER].own()
    carrier = table.sends(OWNER, OTHER, mine)
    for key in (USER, OTHER, THIRD):
        table.machines[key].worker_lost(OWNER)
    assert not table.arrives(OWNER, carrier)
    table.machines[OTHER].receive(OWNER, p.Void(0))
    assert table.kinds() == []
    table.machines[OTHER].worker_lost(OTHER)  # said of oneself: the agent closes, there is nothing to do here
    table.drop(OWNER, mine)
    table.machines[OWNER].worker_lost(OTHER)
    table.assert_empty()


def test_a_claim_of_a_lost_worker_registers_nothing(table):
    mine = table.machines[OWNER].own()
    table.machines[OWNER].worker_lost(OTHER)
    table.machines[OWNER].receive(OTHER, p.Claim(mine[0], GlobalId(USER.rank, 0, 1)))
    assert table.machines[OWNER].forks_of(mine[0]) == {mine[1]: OWNER}
    table.drop(OWNER, mine)
    table.assert_empty()


def test_sending_to_the_lost_keeps_nothing_waiting(table):
    mine = table.creates(USER, OWNER)
    own = table.machines[OWNER].own()
    table.dies(OTHER)
    table.sends(USER, OTHER, mine)
    table.sends(OWNER, OTHER, own)
    table.drop(USER, mine)
    table.drop(OWNER, own)
    table.settle()
    assert set(table.freed(OWNER)) == {mine[0], own[0]}
    table.assert_empty()


def test_another_incarnation_is_another_worker(table):
    mine = table.creates(USER, OWNER)
    table.dies(USER)
    again = WorkerKey(USER.rank, 1)
    table.join(again)
    rref_id, fork_id, carrier = table.machines[again].create(OWNER)
    assert rref_id != mine[0]
    assert table.arrives(again, carrier)
    table.machines[again].confirmed(fork_id)
    table.drop(again, (rref_id, fork_id))
    table.assert_empty()
    assert str(rref_id) == "1.1/0"
    assert str(mine[0]) == "1/0"
