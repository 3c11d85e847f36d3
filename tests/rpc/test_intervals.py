"""The set of counters behaves like a set, and stays small for counters that come almost in order."""

import random

import pytest
from telegrad.rpc.links.intervals import IntervalSet


def test_counters_in_order_are_one_interval():
    numbers = IntervalSet()
    assert all(numbers.add(n) for n in range(1000))
    assert numbers.intervals() == [(0, 1000)]
    assert len(numbers) == 1000
    assert not numbers.add(500)


def test_a_gap_closes_from_both_sides():
    numbers = IntervalSet()
    for n in (0, 4, 2):
        assert numbers.add(n)
    assert numbers.intervals() == [(0, 1), (2, 3), (4, 5)]
    assert numbers.add(1)
    assert numbers.intervals() == [(0, 3), (4, 5)]
    assert numbers.add(3)
    assert numbers.intervals() == [(0, 5)]


def test_an_interval_grows_to_the_left():
    numbers = IntervalSet()
    assert numbers.add(7)
    assert numbers.add(6)
    assert numbers.intervals() == [(6, 8)]
    assert 5 not in numbers
    assert 8 not in numbers


@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_set(seed):
    rng = random.Random(seed)
    numbers, model = IntervalSet(), set()
    for _ in range(400):
        n = rng.randrange(120)
        assert numbers.add(n) == (n not in model)
        model.add(n)
        n = rng.randrange(120)
        numbers.discard(n)
        model.discard(n)
        assert len(numbers) == len(model) and numbers == model
        others = (
            {rng.randrange(120) for _ in range(3)}
            if rng.random() < 0.5
            else set(rng.sample(sorted(model), len(model) // 2))
        )
        assert numbers.covers(IntervalSet(others)) == (others <= model)
        assert numbers.copy() == numbers is not numbers.copy()
    assert list(numbers) == sorted(model)
    assert [n for n in range(-1, 130) if n in numbers] == sorted(model)
    assert [n for first, end in numbers.intervals() for n in range(first, end)] == sorted(model)
    assert all(end < first for (_, end), (first, _) in zip(numbers.intervals(), numbers.intervals()[1:]))


def test_almost_in_order_stays_tiny():
    rng = random.Random(0)
    numbers = IntervalSet()
    for start in range(0, 100_000, 10):
        for n in rng.sample(range(start, start + 10), 10):
            numbers.add(n)
            assert len(numbers.intervals()) < 10
    assert numbers.intervals() == [(0, 100_000)]


def test_a_range_is_one_interval():
    numbers = IntervalSet(range(2, 10_000_000))
    numbers.discard(5)
    assert numbers.intervals() == [(2, 5), (6, 10_000_000)] and len(numbers) == 9_999_997
    assert list(IntervalSet(range(0))) == [] and list(IntervalSet([3, 1])) == [1, 3]


def test_a_negative_number_is_refused():
    with pytest.raises(ValueError, match="you gave -1"):
        IntervalSet().add(-1)


def test_the_representation_shows_the_intervals():
    numbers = IntervalSet()
    numbers.add(0)
    numbers.add(1)
    numbers.add(5)
    assert repr(numbers) == "IntervalSet(0..1, 5..5)"
