"""The ownership machine, case by case: creating, giving, sending to the owner, and transfers that may not have arrived."""

import pytest
from helpers.ownership_table import Table
from telegrad.base.errors import AgentClosedError, IllegalEventError
from telegrad.rref import protocol as p
from telegrad.rref.ids import BLOCK, GlobalId, WorkerKey
from telegrad.rref.owner_table import RegisterAnswer
from telegrad.rref.ownership import Ownership
from telegrad.rref.transfers import ReferenceTransfer

OWNER, USER, OTHER, THIRD = (WorkerKey(rank) for rank in range(4))


@pytest.fixture
def table():
    return Table(OWNER, USER, OTHER, THIRD)


def test_a_local_value_lives_as_long_as_its_handle(table):
    reference = table.own(OWNER)
    assert table.freed(OWNER) == []
    table.drop(OWNER, reference)
    table.drop(OWNER, reference)
    assert table.freed(OWNER) == [reference.rref_id]
    table.assert_empty()


# -- (a) a user creates


def test_a_created_reference_is_confirmed_by_the_reply_and_freed_after_its_delete(table):
    reference = table.creates(USER, OWNER)
    assert table.confirmed(USER) == [reference.fork_id]
    table.drop(USER, reference)
    assert table.kinds() == ["Delete"]
    table.settle()
    assert table.freed(OWNER) == [reference.rref_id]
    table.assert_empty()


def test_the_delete_waits_for_the_confirmation(table):
    reference, transfer = table.calls(USER, OWNER)
    assert table.arrives(USER, transfer)
    table.drop(USER, reference)
    assert table.kinds() == []
    table.handle(USER, p.Delivered(transfer))
    assert table.kinds() == ["Delete"]
    table.assert_empty()


def test_a_lost_reply_is_made_up_for_by_a_cancel_result(table):
    reference, transfer = table.calls(USER, OWNER)
    assert table.arrives(USER, transfer)
    table.handle(USER, p.NotDelivered(transfer))
    table.passes(p.Cancel)
    assert table.passes(p.CancelResult).received
    assert table.confirmed(USER) == [reference.fork_id]
    table.handle(USER, p.Delivered(transfer))  # the reply comes after all
    assert table.confirmed(USER) == [reference.fork_id]
    table.drop(USER, reference)
    table.assert_empty()


def test_a_creation_is_confirmed_when_another_reference_in_its_call_is_known_to_have_arrived(table):
    argument = table.creates(USER, THIRD)
    mine, transfer = table.calls(USER, OWNER, argument)
    assert table.arrives(USER, transfer)  # and its reply is lost
    table.settle()
    table.handle(USER, p.NotDelivered(transfer))
    assert table.confirmed(USER) == [argument.fork_id, mine.fork_id]
    for key, reference in ((USER, argument), (USER, mine), (OWNER, table.adopted(transfer))):
        table.drop(key, reference)
    table.assert_empty()


def test_a_creating_call_that_never_arrives_fails_the_handle_and_is_refused_later(table):
    mine, transfer = table.calls(USER, OWNER)
    table.handle(USER, p.NotDelivered(transfer))
    table.handle(USER, p.NotDelivered(transfer))
    assert table.kinds() == ["Cancel"]
    table.passes(p.Cancel)
    assert not table.arrives(USER, transfer)
    table.settle()
    assert "never reached worker 0" in table.failures(USER)[mine.fork_id]
    assert p.NeverCreated(mine.rref_id) in table.instructions[OWNER]
    assert table.machines[OWNER].owned.value(mine.rref_id) is None
    table.drop(USER, mine)
    table.assert_empty()


def test_creating_on_oneself_needs_no_messages(table):
    mine, transfer = table.calls(USER, USER)
    assert table.machines[USER].owned.value(mine.rref_id) is not None
    assert table.arrives(USER, transfer)
    table.drop(USER, mine)
    assert table.freed(USER) == [mine.rref_id]
    table.assert_empty()


def test_a_self_creation_dropped_before_it_arrives_leaves_nothing(table):
    mine, transfer = table.calls(USER, USER)
    table.drop(USER, mine)
    assert table.arrives(USER, transfer)
    assert table.freed(USER) == [mine.rref_id]
    table.assert_empty()


def test_a_self_creation_that_is_not_sent_has_an_owner_all_the_same(table):
    mine, transfer = table.calls(USER, USER)
    his = table.gives(USER, OTHER, mine)
    table.handle(USER, p.NotDelivered(transfer))
    assert table.failures(USER) == {}  # the error is the value's, and is fetched like one
    table.drop(USER, mine)
    table.drop(OTHER, his)
    table.settle()
    assert table.freed(USER) == [mine.rref_id]
    table.assert_empty()


# -- (b) the owner gives to a user, (e) and to itself


def test_a_fork_given_by_the_owner_is_confirmed_on_arrival(table):
    mine = table.own(OWNER)
    transfer = table.sends(OWNER, OTHER, mine)
    table.drop(OWNER, mine)
    assert table.freed(OWNER) == []  # on its way
    assert table.arrives(OWNER, transfer)
    his = table.adopted(transfer)
    assert table.confirmed(OTHER) == [his.fork_id]
    assert table.machines[OWNER].owned.forks_of(mine.rref_id) == {his.fork_id: OTHER}
    table.drop(OTHER, his)
    table.settle()
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_fork_that_did_not_arrive_is_taken_back(table):
    mine = table.own(OWNER)
    transfer = table.sends(OWNER, OTHER, mine)
    table.drop(OWNER, mine)
    table.handle(OWNER, p.NotDelivered(transfer))
    table.passes(p.Cancel)
    assert not table.arrives(OWNER, transfer)
    assert not table.passes(p.CancelResult).received
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_cancel_after_the_arrival_changes_nothing(table):
    mine = table.own(OWNER)
    transfer = table.sends(OWNER, OTHER, mine)
    assert table.arrives(OWNER, transfer)
    his = table.adopted(transfer)
    table.drop(OWNER, mine)
    table.handle(OWNER, p.NotDelivered(transfer))
    table.drop(OTHER, his)
    table.passes(p.Delete)  # before the question is answered
    assert table.freed(OWNER) == [mine.rref_id]
    table.passes(p.Cancel)
    assert table.passes(p.CancelResult).received
    table.assert_empty()


def test_a_repeated_transfer_is_adopted_once(table):
    mine = table.own(OWNER)
    transfer = table.sends(OWNER, OTHER, mine)
    assert table.arrives(OWNER, transfer)
    his = table.adopted(transfer)
    assert not table.arrives(OWNER, transfer)
    table.drop(OWNER, mine)
    table.drop(OTHER, his)
    assert not table.arrives(OWNER, transfer)
    table.assert_empty()


def test_the_owner_calls_itself_with_its_own_reference(table):
    mine = table.own(OWNER)
    transfer = table.sends(OWNER, OWNER, mine)
    table.drop(OWNER, mine)
    assert table.freed(OWNER) == []
    assert table.arrives(OWNER, transfer)
    table.drop(OWNER, table.adopted(transfer))
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_self_call_that_is_not_sent_is_taken_back_at_once(table):
    mine = table.own(OWNER)
    transfer = table.sends(OWNER, OWNER, mine)
    table.drop(OWNER, mine)
    table.handle(OWNER, p.NotDelivered(transfer))
    assert table.freed(OWNER) == [mine.rref_id]
    assert not table.arrives(OWNER, transfer)
    table.assert_empty()


# -- (c) a user gives to another user


def test_a_user_keeps_its_handle_until_its_child_is_accepted(table):
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    table.drop(USER, mine)
    assert table.kinds() == ["Register"]
    table.passes(p.Register)
    assert table.kinds() == ["Accept"]
    table.passes(p.Accept)
    assert table.confirmed(OTHER) == [his.fork_id]
    assert table.kinds() == ["Acknowledge"]
    table.passes(p.Acknowledge)
    table.passes(p.Delete)
    assert table.machines[OWNER].owned.forks_of(mine.rref_id) == {his.fork_id: OTHER}
    table.drop(OTHER, his)
    table.settle()
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_handle_dropped_before_it_is_accepted_is_deleted_after(table):
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    table.drop(OTHER, his)
    table.drop(USER, mine)
    assert table.kinds() == ["Register"]
    table.settle()
    assert his.fork_id not in table.confirmed(OTHER)
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_an_unconfirmed_handle_can_be_passed_on(table):
    mine = table.creates(USER, OWNER)
    his = table.gives(USER, OTHER, mine)
    third = table.gives(OTHER, THIRD, his)
    table.drop(OTHER, his)
    table.drop(USER, mine)
    second, first = [table.flying.pop(), table.flying.pop()] if table.kinds() == ["Register", "Register"] else []
    for sender, to, message in (second, first):  # the grandchild's request comes first
        table.handle(to, p.Received(sender, message))
    table.settle()
    assert table.machines[OWNER].owned.forks_of(mine.rref_id) == {third.fork_id: THIRD}
    table.drop(THIRD, third)
    table.assert_empty()


def test_a_user_calls_itself(table):
    mine = table.creates(USER, OWNER)
    again = table.gives(USER, USER, mine)
    table.drop(USER, mine)
    table.settle()
    assert table.machines[OWNER].owned.forks_of(mine.rref_id) == {again.fork_id: USER}
    table.drop(USER, again)
    table.settle()
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_call_through_a_reference_needs_no_message_but_its_answer(table):
    mine = table.creates(USER, OWNER)
    transfer = ReferenceTransfer(OWNER, [mine], answered=True)
    table.handle(USER, p.Sending(transfer))
    assert table.arrives(USER, transfer)
    his = table.adopted(transfer)
    table.drop(USER, mine)
    assert table.kinds() == []  # the parent is kept until the answer comes
    table.handle(USER, p.Delivered(transfer))
    assert table.kinds() == ["Delete"]
    table.settle()
    assert table.machines[OWNER].owned.forks_of(mine.rref_id) == {his.fork_id: OWNER}
    table.drop(OWNER, his)
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_a_child_that_did_not_arrive_lets_its_parent_go(table):
    mine = table.creates(USER, OWNER)
    transfer = table.sends(USER, OTHER, mine)
    table.drop(USER, mine)
    table.handle(USER, p.NotDelivered(transfer))
    table.passes(p.Cancel)
    assert not table.arrives(USER, transfer)
    assert table.kinds() == ["CancelResult"]
    table.settle()
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


def test_the_child_is_accepted_before_the_cancel_is_answered(table):
    mine = table.creates(USER, OWNER)
    transfer = table.sends(USER, OTHER, mine)
    table.handle(USER, p.NotDelivered(transfer))
    assert table.arrives(USER, transfer)
    for kind in (p.Register, p.Accept, p.Acknowledge, p.Cancel, p.CancelResult):
        table.passes(kind)
    assert table.machines[USER].counts()["cancelling_transfers"] == 0
    table.drop(USER, mine)
    table.drop(OTHER, table.adopted(transfer))
    table.assert_empty()


def test_one_transfer_brings_many_references_or_none(table):
    references = [table.own(OWNER) for _ in range(3)]
    transfer = table.sends(OWNER, OTHER, *references)
    for reference in references:
        table.drop(OWNER, reference)
    table.handle(OWNER, p.NotDelivered(transfer))
    table.settle()
    assert sorted(table.freed(OWNER)) == [reference.rref_id for reference in references]
    table.assert_empty()


# -- (d) a user gives to the owner


def test_a_user_gives_to_the_owner(table):
    mine = table.creates(USER, OWNER)
    home = table.gives(USER, OWNER, mine)
    assert table.kinds() == ["Acknowledge"]
    table.drop(USER, mine)
    table.settle()
    assert table.confirmed(OWNER) == [home.fork_id]
    assert table.machines[OWNER].owned.forks_of(mine.rref_id) == {home.fork_id: OWNER}
    table.drop(OWNER, home)
    assert table.freed(OWNER) == [mine.rref_id]
    table.assert_empty()


# -- parking, misuse, the end


def test_a_fetch_is_parked_only_before_the_creation(table):
    mine, transfer = table.calls(USER, OWNER)
    owned = table.machines[OWNER].owned
    value = owned.value(mine.rref_id)
    assert value is not None and owned.value(mine.rref_id) is value
    assert owned.value(GlobalId(OWNER.number, 0, 77)) is None
    assert table.arrives(USER, transfer)
    assert owned.value(mine.rref_id) is value
    table.handle(USER, p.Delivered(transfer))
    table.drop(USER, mine)
    table.settle()
    assert owned.value(mine.rref_id) is None


def test_nothing_is_awaited_of_a_creator_that_is_gone():
    """Its worker joined after the loss, and the machine was not told."""
    owned = Ownership(OWNER, is_gone=lambda key: key == USER).owned
    assert owned.value(GlobalId(USER.number, 0, 7)) is None
    assert owned.value(GlobalId(OTHER.number, 0, 7)) is not None
    assert owned.request(GlobalId(USER.number, 0, 8), GlobalId(OTHER.number, 0, 9), THIRD) is RegisterAnswer.REJECTED


def test_freed_ids_are_few_intervals_though_many_owners_take_turns(table):
    owners = (OWNER, OTHER, THIRD)
    for _ in range(2 * BLOCK):
        for owner in owners:
            mine, transfer = table.calls(USER, owner)
            assert table.arrives(USER, transfer)
            table.handle(USER, p.Delivered(transfer))
            table.drop(USER, mine)
        table.settle()
    for owner in owners:
        assert len(table.machines[owner].owned.freed(USER).intervals()) == 2
        assert len(table.machines[owner].transfers.seen(USER).intervals()) == 1
    table.assert_empty()


def test_a_released_handle_cannot_be_sent(table):
    mine, other = table.own(OWNER), table.own(OWNER)
    table.drop(OWNER, mine)
    with pytest.raises(ValueError, match="after it was released"):
        table.sends(OWNER, OTHER, other, mine)
    table.drop(OWNER, other)
    table.assert_empty()


def test_a_closed_machine_forgets_everything_and_ignores_what_comes(table):
    mine = table.creates(USER, OWNER)
    transfer = table.sends(USER, OTHER, mine)
    machine = table.machines[OTHER]
    machine.clear()
    assert not table.arrives(USER, transfer)
    events = [p.Received(USER, p.Cancel(0)), p.WorkerLost(USER), p.Dropped(mine), p.Delivered(transfer)]
    for event in events:
        assert machine.handle(event) == []
    assert not any(machine.counts().values())
    for use in (lambda: table.own(OTHER), lambda: table.calls(OTHER, OWNER), lambda: table.sends(OTHER, OWNER)):
        with pytest.raises(AgentClosedError, match="after shutdown"):
            use()


@pytest.mark.parametrize("message", [p.Accept, lambda fork_id: p.Reject(fork_id, "no such value")])
def test_an_illegal_event_raises(table, message):
    mine = table.creates(USER, OWNER)
    with pytest.raises(IllegalEventError, match="confirmed"):
        table.handle(USER, p.Received(OWNER, message(mine.fork_id)))
    table.drop(USER, mine)
    with pytest.raises(IllegalEventError, match="no fork"):
        table.handle(USER, p.Received(OWNER, message(mine.fork_id)))
    table.assert_empty()


def test_names_of_workers_can_be_given():
    machine = Ownership(USER, name_of=lambda key: f"trainer{key.number}")
    transfer = ReferenceTransfer(OWNER, creates=True)
    machine.handle(p.Sending(transfer))
    (failure,) = machine.handle(p.WorkerLost(OWNER))
    assert (failure.fork, failure.lost) == (transfer.created, OWNER)
    assert "trainer0" in failure.reason


# -- a call of a method borrows the value


def test_a_call_keeps_its_fork_until_it_is_answered_and_needs_no_message(table):
    mine = table.creates(USER, OWNER)
    transfer = ReferenceTransfer(OWNER, borrowed=mine)
    table.handle(USER, p.Sending(transfer))
    table.drop(USER, mine)
    assert table.arrives(USER, transfer) and table.kinds() == []
    assert list(table.machines[OWNER].owned.forks_of(mine.rref_id)) == [mine.fork_id]
    table.handle(USER, p.Delivered(transfer))
    assert table.kinds() == ["Delete"]
    table.assert_empty()


def test_a_value_that_is_gone_is_not_borrowed(table):
    mine = table.creates(USER, OWNER)
    transfer = ReferenceTransfer(OWNER, borrowed=mine)
    table.handle(USER, p.Sending(transfer))
    table.dies(USER)
    arriving = ReferenceTransfer.arriving(OTHER, 0, transfer.entries)
    table.handle(OWNER, p.ReferencesArrived(arriving))
    assert arriving.adopted and arriving.value is None
    table.assert_empty()


def test_a_borrow_of_a_released_reference_is_refused(table):
    mine = table.creates(USER, OWNER)
    table.drop(USER, mine)
    with pytest.raises(ValueError, match="released"):
        table.handle(USER, p.Sending(ReferenceTransfer(OWNER, borrowed=mine)))
    table.assert_empty()
