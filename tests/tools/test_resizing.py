"""``telegrad.tools.resizing``: what counts as a pause."""

import pytest
from telegrad.tools.resizing import CountedStep, pauses


def test_a_pause_is_the_time_around_a_change_less_that_of_the_usual_step():
    times = [(4, 1.0), (4, 1.5), (3, 3.0), (3, 3.5), (3, 4.0), (6, 5.25)]
    steps = [CountedStep(number, members, 0.0, at, at / 10, 0) for number, (members, at) in enumerate(times)]
    found = pauses(steps)
    assert [(each.before, each.after) for each in found] == [(4, 3), (3, 6)]
    assert [each.seconds for each in found] == pytest.approx([1.0, 0.75])
    assert [each.cpu for each in found] == pytest.approx([0.1, 0.075])
