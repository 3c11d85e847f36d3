"""Every schedule does all work once, in an order in which no stage waits for ever, and as fast as theory says."""

import itertools

import pytest
from telegrad.pipelining import Action, bubble, schedule_of
from telegrad.pipelining.schedules import BACKWARD, FORWARD

SIZES = list(itertools.product(range(1, 6), range(1, 9)))


def orders(name, stages, microbatches):
    return [schedule_of(name)(stage, stages, microbatches) for stage in range(stages)]


def makespan(orders, forward, backward):
    """Return how long a step takes if messages take no time and each piece of work so many seconds."""
    ended, free, left = {}, [0.0] * len(orders), [list(order) for order in orders]
    while any(left):
        ready = [
            stage
            for stage, order in enumerate(left)
            if order and needed(stage, order[0], len(orders)) in {*ended, None}
        ]
        assert ready, f"stages wait for one another: {left}"
        for stage in ready:
            action = left[stage].pop(0)
            start = max(free[stage], ended.get(needed(stage, action, len(orders)), 0.0))
            ended[stage, action] = free[stage] = start + (forward if action.kind == FORWARD else backward)
    return max(free)


def needed(stage, action, stages):
    """Return the stage and action whose result an action needs; ``None`` if it needs none."""
    if action.kind == FORWARD:
        return (stage - 1, action) if stage else None
    return (stage + 1, action) if stage < stages - 1 else (stage, Action(FORWARD, action.microbatch))


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
    seconds = makespan(plans, 1.0, 2.0)
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
    with pytest.raises(AssertionError, match="stages wait for one another"):
        makespan(wrong, 1.0, 1.0)


@pytest.mark.parametrize("name", ["zigzag", None])
def test_an_unknown_schedule(name):
    with pytest.raises(ValueError, match="must be 'GPipe' or '1F1B'"):
        schedule_of(name)
