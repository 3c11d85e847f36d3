"""Constraints: where they hold, as in PyTorch, and those of one's own."""

import pickle

import pytest
import telegrad as tg
from helpers.distributions import GOLDEN
from telegrad import distributions as d
from telegrad.distributions import constraints


@pytest.mark.parametrize("case", GOLDEN["constraints"], ids=lambda case: case["constraint"])
def test_where_they_hold(case):
    constraint = eval(f"c.{case['constraint']}", {"c": constraints})
    assert constraint.check(tg.tensor(case["values"])).tolist() == case["holds"]
    assert repr(constraint)


def test_bounds_of_tensors_and_numbers_are_told():
    assert repr(constraints.interval(0.0, 1.5)) == "numbers from 0 to 1.5"
    assert repr(constraints.greater_than(tg.ones(2))) == "numbers above its low"
    assert pickle.loads(pickle.dumps(constraints.interval(0.0, 1.5))).check(tg.tensor(1.0))


def test_one_of_ones_own():
    class Even(constraints.Constraint):
        is_discrete = True

        def check(self, value):
            return value % 2 == 0

    class Doubled(d.Distribution):
        arg_constraints = {"n": Even(), "any": constraints.dependent}  # noqa: RUF012

        def __init__(self, n):
            self.n, self.any = n, tg.tensor(-1.0)
            super().__init__(n.shape)

        @constraints.dependent_property(is_discrete=True, event_dim=0)
        def support(self):
            return constraints.integer_interval(0, self.n)

    assert Doubled(tg.tensor(4.0)).support.check(tg.tensor(5.0)).item() is False
    assert constraints.is_dependent(Doubled.support) and Doubled.support.is_discrete
    assert constraints.independent(Even(), 1).check(tg.tensor([[2.0, 4.0], [2.0, 3.0]])).tolist() == [True, False]
    with pytest.raises(ValueError, match="parameter n must be Even"):
        Doubled(tg.tensor(3.0))
    with pytest.raises(ValueError, match="cannot be checked"):
        constraints.dependent.check(tg.tensor(1.0))


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="an event has 2 dimensions"):
        constraints.independent(constraints.real, 2).check(tg.ones(3))
    with pytest.raises(ValueError, match="has no dimension 1"):
        constraints.stack([constraints.real], 1).check(tg.ones(3))
