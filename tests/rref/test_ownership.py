"""The ownership machine, case by case: creating, giving, coming home, and carriers of unknown fate."""

import pytest
from telegrad.core.errors import AgentClosedError
from telegrad.rref import protocol as p
from telegrad.rref.ids import BLOCK, GlobalId, WorkerKey
from telegrad.rref.ownership import Ownership
from telegrad.testing.table import Table

OWNER, USER, OTHER, THIRD = (WorkerKey(rank) for rank in range(4))


@pytest.fixture
def table():
    return Table(OWNER, USER, OTHER, THIRD)


def test_a_local_value_lives_as_long_as_its_handle(table):
    reference = table.machines[OWNER].own()
    assert table.freed(OWNER) == []
    table.drop(OWNER, reference)
    table.drop(OWNER, reference)
    assert table.freed(OWNER) == [reference[0]]
    table.assert_empty()


# -- (a) a user creates


def test_a_created_reference_is_confirmed_by_the_reply_and_freed_after_its_delete(table):
    reference = table.creates(USER, OWNER)
    assert table.confirmed(USER) == [reference[1]]
    table.drop(USER, reference)
    assert table.kinds() == ["Delete"]
    table.settle()
    assert table.freed(OWNER) == [reference[0]]
    table.assert_empty()


def test_the_delete_waits_for_the_confirmation(table):
    reference = table.creates(USER, OWNER, confirm=False)
    table.drop(USER, reference)
    assert table.kinds() == []
    table.machines[USER].confirmed(reference[1])
    assert table.kinds() == ["Delete"]
    table.assert_empty()


def test_a_lost_reply_is_made_up_for_by_voiding(table):
    reference = table.creates(USER, OWNER, confirm=False)
    table.machines[USER].not_delivered(OWNER, 0)
    table.passes(p.Void)
    assert table.passes(p.Voided).received
    assert table.confirmed(USER) == [reference[1]]
    table.machines[USER].confirmed(reference[1])  # the reply comes after all
    assert table.confirmed(USER) == [reference[1]]
    table.drop(USER, reference)
    table.assert_empty()


def test_a_creation_is_confirmed_when_another_reference_in_its_call_is_known_to_have_arrived(table):
    argument = table.machines[USER].create(THIRD)
    assert table.arrives(USER, argument[2])
    table.machines[USER].confirmed(argument[1])
    rref_id, fork_id, carrier = table.machines[USER].create(OWNER, [argument[:2]])
    assert table.arrives(USER, carrier)  # and its reply is lost
    table.settle()
    table.machines[USER].not_delivered(OWNER, carrier.number)
    assert table.confirmed(USER) == [argument[1], fork_id]
    for key, reference in ((USER, argument), (USER, (rref_id, fork_id)), (OWNER, (0, carrier.entries[1].fork_id))):
        table.drop(key, reference)
    table.assert_empty()


def test_a_creating_call_that_never_arrives_fails_the_handle_and_is_refused_later(table):
    rref_id, fork_id, carrier = table.machines[USER].create(OWNER)
    table.machines[USER].not_delivered(OWNER, carrier.number)
    table.machines[USER].not_delivered(OWNER, carrier.number)
    assert table.kinds() == ["Void"]
    table.passes(p.Void)
    assert not table.arrives(USER, carrier)
    table.settle()
    assert "never reached worker 0" in table.failures(USER)[fork_id]
    assert p.NeverCreated(rref_id) in table.said[OWNER]
    assert not table.machines[OWNER].may_park(rref_id, USER)
    table.drop(USER, (rref_id, fork_id))
    table.assert_empty()


def test_creating_on_oneself_needs_no_messages(table):
    rref_id, fork_id, carrier = table.machines[USER].create(USER)
    assert table.machines[USER].may_park(rref_id, USER)
    assert table.arrives(USER, carrier)
    table.drop(USER, (rref_id, fork_id))
    assert table.freed(USER) == [rref_id]
    table.assert_empty()


def test_a_self_creation_dropped_before_it_arrives_leaves_nothing(table):
    rref_id, fork_id, carrier = table.machines[USER].create(USER)
    table.drop(USER, (rref_id, fork_id))
    assert table.arrives(USER, carrier)
    assert table.freed(USER) == [rref_id]
    table.assert_empty()


def test_a_self_creation_that_is_not_sent_has_an_owner_all_the_same(table):
    mine = table.machines[USER].create(USER)[:2]
    his = table.gives(USER, OTHER, mine)
    table.machines[USER].not_delivered(USER, 0)
    assert table.failures(USER) == {}  # the error is the value's, and is fetched like one
    table.drop(USER, mine)
    table.drop(OTHER, his)
    table.settle()
    assert table.freed(USER) == [mine[0]]
    table.assert_empty()


# -- (b) the owner gives to a user, (e) and to itself


def test_a_fork_given_by_the_owner_is_confirmed_on_arrival(table):
    mine = table.machines[OWNER].own()
    carrier = table.sends(OWNER, OTHER, mine)
    table.drop(OWNER, mine)
    assert table.freed(OWNER) == []  # on its way
    assert table.arrives(OWNER, carrier)
    fork_id = carrier.entries[0].fork_id
    assert table.confirmed(OTHER) == [fork_id]
    assert table.machines[OWNER].forks_of(mine[0]) == {fork_id: OTHER}
    table.drop(OTHER, (mine[0], fork_id))
    table.settle()
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_a_fork_that_did_not_arrive_is_taken_back(table):
    mine = table.machines[OWNER].own()
    carrier = table.sends(OWNER, OTHER, mine)
    table.drop(OWNER, mine)
    table.machines[OWNER].not_delivered(OTHER, carrier.number)
    table.passes(p.Void)
    assert not table.arrives(OWNER, carrier)
    assert not table.passes(p.Voided).received
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_voiding_after_the_arrival_changes_nothing(table):
    mine = table.machines[OWNER].own()
    his = table.gives(OWNER, OTHER, mine)
    table.drop(OWNER, mine)
    table.machines[OWNER].not_delivered(OTHER, 0)
    table.drop(OTHER, his)
    table.passes(p.Delete)  # before the question is answered
    assert table.freed(OWNER) == [mine[0]]
    table.passes(p.Void)
    assert table.passes(p.Voided).received
    table.assert_empty()


def test_a_repeated_carrier_is_adopted_once(table):
    mine = table.machines[OWNER].own()
    carrier = table.sends(OWNER, OTHER, mine)
    assert table.arrives(OWNER, carrier)
    assert not table.arrives(OWNER, carrier)
    table.drop(OWNER, mine)
    table.drop(OTHER, (mine[0], carrier.entries[0].fork_id))
    assert not table.arrives(OWNER, carrier)
    table.assert_empty()


def test_the_owner_calls_itself_with_its_own_reference(table):
    mine = table.machines[OWNER].own()
    carrier = table.sends(OWNER, OWNER, mine)
    table.drop(OWNER, mine)
    assert table.freed(OWNER) == []
    assert table.arrives(OWNER, carrier)
    table.drop(OWNER, (mine[0], carrier.entries[0].fork_id))
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_a_self_call_that_is_not_sent_is_taken_back_at_once(table):
    mine = table.machines[OWNER].own()
    carrier = table.sends(OWNER, OWNER, mine)
    table.drop(OWNER, mine)
    table.machines[OWNER].not_delivered(OWNER, carrier.number)
    assert table.freed(OWNER) == [mine[0]]
    assert not table.arrives(OWNER, carrier)
    table.assert_empty()


# -- (c) a user gives to another user


def test_a_user_keeps_its_handle_until_its_child_is_accepted(table):
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    table.drop(USER, mine)
    assert table.kinds() == ["Claim"]
    table.passes(p.Claim)
    assert table.kinds() == ["Accept"]
    table.passes(p.Accept)
    assert table.confirmed(OTHER) == [his[1]]
    assert table.kinds() == ["ChildAccepted"]
    table.passes(p.ChildAccepted)
    table.passes(p.Delete)
    assert table.machines[OWNER].forks_of(mine[0]) == {his[1]: OTHER}
    table.drop(OTHER, his)
    table.settle()
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_a_handle_dropped_before_it_is_accepted_is_deleted_after(table):
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    table.drop(OTHER, his)
    table.drop(USER, mine)
    assert table.kinds() == ["Claim"]
    table.settle()
    assert his[1] not in table.confirmed(OTHER)
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_an_unconfirmed_handle_can_be_passed_on(table):
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    third = table.gives(OTHER, THIRD, his)
    table.drop(OTHER, his)
    table.drop(USER, mine)
    second, first = [table.flying.pop(), table.flying.pop()] if table.kinds() == ["Claim", "Claim"] else []
    for sender, to, message in (second, first):  # the grandchild's claim comes first
        table.machines[to].receive(sender, message)
    table.settle()
    assert table.machines[OWNER].forks_of(mine[0]) == {third[1]: THIRD}
    table.drop(THIRD, third)
    table.assert_empty()


def test_a_user_calls_itself(table):
    mine = table.creates(USER, OWNER)
    again = table.gives(USER, USER, mine)
    table.drop(USER, mine)
    table.settle()
    assert table.machines[OWNER].forks_of(mine[0]) == {again[1]: USER}
    table.drop(USER, again)
    table.settle()
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_a_child_that_did_not_arrive_lets_its_parent_go(table):
    mine = table.creates(USER, OWNER)
    carrier = table.sends(USER, OTHER, mine)
    table.drop(USER, mine)
    table.machines[USER].connection_broke(OTHER)
    table.passes(p.Void)
    assert not table.arrives(USER, carrier)
    assert table.kinds() == ["Voided"]
    table.settle()
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


def test_the_child_is_accepted_before_the_voiding_is_answered(table):
    mine = table.creates(USER, OWNER)
    carrier = table.sends(USER, OTHER, mine)
    table.machines[USER].not_delivered(OTHER, carrier.number)
    assert table.arrives(USER, carrier)
    for kind in (p.Claim, p.Accept, p.ChildAccepted, p.Void, p.Voided):
        table.passes(kind)
    assert table.machines[USER].counts()["voiding_carriers"] == 0
    table.drop(USER, mine)
    table.drop(OTHER, (mine[0], carrier.entries[0].fork_id))
    table.assert_empty()


def test_one_carrier_brings_many_references_or_none(table):
    references = [table.machines[OWNER].own() for _ in range(3)]
    carrier = table.machines[OWNER].outgoing(OTHER, references)
    for reference in references:
        table.drop(OWNER, reference)
    table.machines[OWNER].not_delivered(OTHER, carrier.number)
    table.settle()
    assert sorted(table.freed(OWNER)) == [rref_id for rref_id, _ in references]
    table.assert_empty()


def test_a_message_without_references_needs_no_carrier(table):
    carrier = table.machines[OWNER].outgoing(OTHER, [])
    assert (carrier.number, carrier.entries) == (-1, [])
    assert table.arrives(OWNER, carrier)
    assert table.arrives(OWNER, carrier)
    table.machines[OWNER].not_delivered(OTHER, carrier.number)
    assert table.kinds() == []
    table.assert_empty()


# -- (d) a user gives to the owner


def test_a_reference_comes_home(table):
    mine = table.creates(USER, OWNER)
    home = table.gives(USER, OWNER, mine)
    assert table.kinds() == ["ChildAccepted"]
    table.drop(USER, mine)
    table.settle()
    assert table.confirmed(OWNER) == [home[1]]
    assert table.machines[OWNER].forks_of(mine[0]) == {home[1]: OWNER}
    table.drop(OWNER, home)
    assert table.freed(OWNER) == [mine[0]]
    table.assert_empty()


# -- parking, misuse, the end


def test_only_the_creators_fetch_is_parked_and_only_before_the_creation(table):
    rref_id, fork_id, carrier = table.machines[USER].create(OWNER)
    owner = table.machines[OWNER]
    assert owner.may_park(rref_id, USER)
    assert not owner.may_park(rref_id, OTHER)
    assert not owner.may_park(GlobalId(OWNER.rank, 0, 77), OWNER)
    assert table.arrives(USER, carrier)
    assert owner.may_park(rref_id, OTHER)  # it exists: its value may be awaited by all
    table.machines[USER].confirmed(fork_id)
    table.drop(USER, (rref_id, fork_id))
    table.settle()
    assert not owner.may_park(rref_id, USER)


def test_freed_ids_are_few_intervals_though_many_owners_take_turns(table):
    owners = (OWNER, OTHER, THIRD)
    for _ in range(2 * BLOCK):
        for owner in owners:
            rref_id, fork_id, carrier = table.machines[USER].create(owner)
            assert table.arrives(USER, carrier)
            table.machines[USER].confirmed(fork_id)
            table.drop(USER, (rref_id, fork_id))
        table.settle()
    for owner in owners:
        assert len(table.machines[owner]._owned._freed[USER].intervals()) == 2
        assert len(table.machines[owner]._seen[USER].intervals()) == 1
    table.assert_empty()


def test_a_released_handle_cannot_be_sent(table):
    mine, other = table.machines[OWNER].own(), table.machines[OWNER].own()
    table.drop(OWNER, mine)
    with pytest.raises(ValueError, match="after it was released"):
        table.machines[OWNER].outgoing(OTHER, [other, mine])
    table.drop(OWNER, other)
    table.assert_empty()


def test_a_closed_machine_forgets_everything_and_ignores_what_comes(table):
    mine = table.creates(USER, OWNER)
    carrier = table.sends(USER, OTHER, mine)
    machine = table.machines[OTHER]
    machine.close()
    assert not table.arrives(USER, carrier)
    machine.receive(USER, p.Void(0))
    machine.worker_lost(USER)
    machine.dropped(mine[1])
    machine.confirmed(mine[1])
    machine.connection_broke(USER)
    assert machine.take() == []
    assert not any(machine.counts().values())
    for use in (machine.own, lambda: machine.create(OWNER), lambda: machine.outgoing(OWNER, [])):
        with pytest.raises(AgentClosedError, match="after shutdown"):
            use()


def test_names_of_workers_can_be_given():
    machine = Ownership(USER, name_of=lambda key: f"trainer{key.rank}")
    _, fork_id, _ = machine.create(OWNER)
    machine.worker_lost(OWNER)
    (failure,) = machine.take()
    assert (failure.fork_id, failure.lost) == (fork_id, OWNER)
    assert "trainer0" in failure.message
