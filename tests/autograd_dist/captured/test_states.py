"""The states of captured steps as a machine: forms of steps, and numbers of parts and replays at both ends."""

import itertools
import re

import pytest
from telegrad.autograd_dist.captured.states import (
    IN_JOINED,
    NOT_RETURNED,
    NOT_TAKEN,
    PARTS_KEPT,
    REASONS,
    REPLAYS_KEPT,
    PartTable,
    ReplayForm,
    StepForm,
    StepMove,
    StepPlace,
)
from telegrad.base.errors import IllegalEventError

PLAIN, ENTER, CALL, TAKE, BACKWARD, STEP, LEAVE, RETURN = StepMove


def walk(moves, joined=False):
    """Make moves; a move that takes is a pair with the number of the call."""
    form = StepForm(joined)
    for each in moves:
        form.move(*each) if isinstance(each, tuple) else form.move(each)
    return form


def orders(calls):
    """Return all orders of calls, and of taking their results."""
    events = [each for number in range(calls) for each in ((CALL, number), (TAKE, number))]
    for order in itertools.permutations(events):
        begun = [number for move, number in order if move is CALL]
        if begun == sorted(begun) and all(order.index((CALL, n)) < order.index((TAKE, n)) for n in begun):
            yield [CALL if move is CALL else (TAKE, number) for move, number in order]


ALL = [order for calls in (1, 2, 3) for order in orders(calls)]


@pytest.mark.parametrize("calls", ALL)
def test_calls_and_what_they_return_come_in_any_order(calls):
    form = walk([ENTER, *calls, BACKWARD, STEP, LEAVE, RETURN])
    assert form.place is StepPlace.LEFT
    assert walk([*calls, RETURN], joined=True).alone == form.alone
    last = len([each for each in calls if each is CALL]) - 1
    before = calls[: max(place for place, each in enumerate(calls) if each is CALL)]
    alone = all((TAKE, number) in before for number in range(last))
    assert form.alone == (last if alone else None)


@pytest.mark.parametrize("calls", ALL)
def test_no_backward_before_all_is_taken(calls):
    for stop in range(1, len(calls)):
        open_calls = calls[:stop].count(CALL) > len([each for each in calls[:stop] if each is not CALL])
        if open_calls:
            with pytest.raises(IllegalEventError, match="does not wait for the result"):
                walk([ENTER, *calls[:stop], BACKWARD])
            with pytest.raises(IllegalEventError, match=NOT_RETURNED):
                walk([*calls[:stop], RETURN], joined=True)


@pytest.mark.parametrize("move", [PLAIN, ENTER, BACKWARD, STEP, LEAVE])
def test_a_part_of_another_worker_s_step_has_no_pass_and_no_context_of_its_own(move):
    for before in ([], [CALL], [CALL, (TAKE, 0)]):
        with pytest.raises(IllegalEventError, match=re.escape(IN_JOINED)):
            walk([*before, move], joined=True)


MOVES = [PLAIN, ENTER, CALL, (TAKE, 0), BACKWARD, STEP, LEAVE, RETURN]


def test_other_forms_end_at_the_first_move_that_does_not_fit():
    good = [ENTER, CALL, (TAKE, 0), BACKWARD, STEP, LEAVE]
    for stop, wrong in itertools.product(range(len(good) + 1), MOVES):
        if (
            good[stop : stop + 1] == [wrong]
            or (stop in (2, 3) and wrong in (CALL, (TAKE, 0)))
            or (stop in (0, 6) and wrong in (PLAIN, RETURN))
        ):
            continue
        with pytest.raises(IllegalEventError) as error:
            walk([*good[:stop], wrong])
        move = wrong[0] if isinstance(wrong, tuple) else wrong
        assert str(error.value) == (NOT_TAKEN if (stop, move) == (2, BACKWARD) else REASONS[move])


def gradient_orders(callers):
    """Return all orders of the backwards of calls by some callers; those of one caller may run at the same time."""
    events = [each for caller in callers for each in (("begin", caller), ("end", caller))]
    for order in itertools.permutations(events):
        if all(order.index(("begin", each)) < order.index(("end", each)) for each in callers):
            yield order


@pytest.mark.parametrize("callers", [["b"], ["b", "c"], ["b", "c", "d"]])
def test_a_worker_steps_when_the_gradients_of_all_its_callers_have_run(callers):
    for order in gradient_orders(callers):
        form = ReplayForm()
        for caller in callers:
            form.returned((caller, 1))
        complete = []
        for what, caller in order:
            if what == "begin":
                form.begin([(caller, 1)])
            else:
                complete.append(form.end([(caller, 1)]))
        assert complete == [False] * (len(callers) - 1) + [True]


def test_gradients_come_once_for_calls_that_are_known():
    for events in itertools.permutations([["one"], ["two"], ["one", "two"], ["other"]], 2):
        form = ReplayForm()
        form.returned("one")
        form.returned("two")
        known, seen = {"one", "two"}, set()
        for calls in events:
            if known.issuperset(calls) and seen.isdisjoint(calls):
                form.begin(calls)
                seen.update(calls)
            else:
                with pytest.raises(IllegalEventError, match="came twice"):
                    form.begin(calls)
                assert form.end([]) is False


def test_one_message_names_a_call_once():
    form = ReplayForm()
    form.returned("one")
    with pytest.raises(IllegalEventError):
        form.begin(["one", "one"])


OLD, NEW, OTHER = (1, 1), (1, 2), (2, 1)  # incarnations of workers


def test_a_number_of_one_caller_means_nothing_to_another():
    table = PartTable()
    table.learn(OLD, 7, "part")
    assert (table.find(OLD, 7), table.find(OTHER, 7), table.find(OLD, 8)) == ("part", None, None)


def test_a_restarted_caller_finds_nothing_also_if_it_comes_before_the_news_of_the_loss():
    for order in itertools.permutations(["learn", "lost"]):
        table = PartTable()
        table.learn(OLD, 1, "old")
        for each in order:
            if each == "learn":
                table.learn(NEW, 1, "new")
            else:
                assert table.lost(OLD) == ["old"]
        assert (table.find(OLD, 1), table.find(NEW, 1)) == (None, "new")


def test_gradients_find_their_replay_once():
    table = PartTable()
    table.keep(OLD, 3, 3, "forward")
    assert (table.kept(NEW, 3), table.take(NEW, 3)) == (None, None)
    assert (table.kept(OLD, 3), table.take(OLD, 3)) == ("forward", "forward")
    assert table.take(OLD, 3) is None  # they came twice, or late


def test_replays_that_are_over_are_dropped_with_the_next_forward():
    table = PartTable()
    for number in (1, 2, 3):
        assert table.keep(OLD, number, 1, number) == []
    assert table.keep(OLD, 4, 3, 4) == [1, 2]
    assert [table.take(OLD, number) for number in (1, 2, 3, 4)] == [None, None, 3, 4]


def test_both_tables_have_bounds():
    table = PartTable()
    dropped = [each for number in range(PARTS_KEPT + 2) for each in table.learn(OLD, number, number)]
    assert (dropped, len(table)) == ([0, 1], PARTS_KEPT)
    dropped = [each for number in range(REPLAYS_KEPT + 2) for each in table.keep(OLD, number, 0, number)]
    assert dropped == [0, 1]


def test_a_part_that_is_used_stays_longest():
    table = PartTable()
    for number in range(PARTS_KEPT):
        table.learn(OLD, number, number)
    table.find(OLD, 0)
    assert table.learn(OLD, PARTS_KEPT, "new") == [1]


def test_forgotten_and_cleared_parts_are_returned():
    table = PartTable()
    table.learn(OLD, 1, "one")
    table.learn(OTHER, 1, "two")
    table.keep(OTHER, 1, 1, "replay")
    assert table.forget(OLD, 1) == "one"
    assert table.forget(OLD, 1) is None
    assert sorted(table.clear()) == ["replay", "two"]
    assert len(table) == 0
