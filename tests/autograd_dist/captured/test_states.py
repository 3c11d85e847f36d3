"""The states of captured steps as a machine: forms of steps, and numbers of parts and replays at both ends."""

import itertools

import pytest
from telegrad.autograd_dist.captured.states import (
    PARTS_KEPT,
    REASONS,
    REPLAYS_KEPT,
    PartTable,
    StepMove,
    StepPlace,
    next_place,
)
from telegrad.core.errors import IllegalEventError

FORM = [StepMove.ENTER, StepMove.CALL, StepMove.BACKWARD, StepMove.STEP, StepMove.LEAVE]


def walk(moves):
    place = StepPlace.OUTSIDE
    for move in moves:
        place = next_place(place, move)
    return place


def test_a_step_has_one_form():
    assert walk(FORM) is StepPlace.LEFT
    others = [moves for moves in itertools.product(StepMove, repeat=5) if list(moves) != FORM]
    for moves in others:
        with pytest.raises(IllegalEventError):
            walk(moves)


def test_the_reason_names_the_first_move_that_does_not_fit():
    for stop, wrong in itertools.product(range(6), StepMove):
        if FORM[stop : stop + 1] != [wrong]:
            with pytest.raises(IllegalEventError) as error:
                walk([*FORM[:stop], wrong])
            assert str(error.value) == REASONS[wrong]


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
    assert table.take(NEW, 3) is None
    assert table.take(OLD, 3) == "forward"
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
