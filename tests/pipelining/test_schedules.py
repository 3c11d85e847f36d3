"""Every schedule does all work once, in an order in which no stage waits for ever, and as fast as theory says."""

import itertools

import pytest
from telegrad.pipelining import Action, bubble, schedule_of
from telegrad.pipelining.schedules import BACKWARD, FORWARD, makespan

SIZES = list(itertools.product(range(1, 6), range(1, 9)))


def orders(name, stages, microbatches):
    return [schedule_of(name)(stage, stages, microbatches) for stage in range(stages)]


def most_kept(order):
    kept = most = 0
    for action in order:
        kept += 1 if action.kind == FORWARD else -1
        most = max(most, kept)
    return most


@pytest.mark.parametrize("name", ["GPipe", "1f1b"])
@pytest.mark.parametrize("stages, microbatches", SIZES)
def test_all_work_is_done_and_the_bubble_is_that_of_theory(name, stages, microbatches):
    plans = orders(name, stages, microbatches)
    everything = {Action(kind, number) for kind in (FORWARD, BACKWARD) for number in range(microbatches)}
    for order in plans:
        assert len(order) == len(everything) and set(order) == everything
    seconds = makespan(plans, [1.0] * stages, [2.0] * stages)
    assert seconds == 3.0 * (microbatches + stages - 1)
    assert 1 - 3.0 * microbatches / seconds == pytest.approx(bubble(stages, microbatches))


@pytest.mark.parametrize("stages, microbatches", SIZES)
def test_1f1b_keeps_fewer_activations(stages, microbatches):
    for stage, (some, all_first) in enumerate(
        zip(orders("1F1B", stages, microbatches), orders("GPipe", stages, microbatches), strict=True)
    ):
        assert most_kept(some) == min(stages - stage, microbatches)
        assert most_kept(all_first) == microbatches


def test_an_order_that_waits_for_ever_is_noticed():
    wrong = [[Action(BACKWARD, 0), Action(FORWARD, 0)], [Action(FORWARD, 0), Action(BACKWARD, 0)]]
    with pytest.raises(ValueError, match="stages wait for one another"):
        makespan(wrong, [1.0] * 2, [1.0] * 2)


@pytest.mark.parametrize("name", ["zigzag", None])
def test_an_unknown_schedule(name):
    with pytest.raises(ValueError, match="must be 'GPipe' or '1F1B'"):
        schedule_of(name)
