"""``tg.log`` and ``tg.progress``: what they keep, their bounds, many threads, and bad input."""

import itertools
import math
import threading
import warnings

import numpy as np
import pytest
import telegrad as tg
from telegrad.core.recording import (
    MOST_LOOPS,
    MOST_NAMES,
    MOST_POINTS,
    Point,
    ProgramLog,
    Series,
    loops,
    process_log,
    program_log,
    scalars,
)


@pytest.fixture(autouse=True)
def log(monkeypatch):
    """Return a new log of the process."""
    monkeypatch.setattr(process_log, "_log", ProgramLog())
    monkeypatch.setattr(scalars, "_warned", False)
    return program_log()


def last(log, name):
    return log.series()[name].last[:2]


def test_a_scalar_has_its_step_and_without_one_its_number(log):
    tg.log(loss=0.5, step=7)
    tg.log(accuracy=0.1)
    tg.log(accuracy=0.2)
    assert last(log, "loss") == (7, 0.5) and last(log, "accuracy") == (1, 0.2)


@pytest.mark.parametrize(
    "value, kept",
    [
        (3, 3.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.array([2]), 2.0),
        (tg.tensor(1.5), 1.5),
        (tg.tensor([[1.5]], requires_grad=True), 1.5),
        (math.inf, math.inf),
    ],
)
def test_what_is_a_scalar(log, value, kept):
    tg.log(value=value)
    assert last(log, "value") == (0, kept)


def test_the_logarithm_is_as_before(log):
    x = tg.tensor([1.0, math.e])
    assert tg.log(x).tolist() == x.log().tolist() == [0.0, 1.0] and tg.log(input=x, out=tg.empty(2)).tolist() == [0, 1]
    assert log.series() == {}
    with pytest.raises(TypeError, match=r"log\(\) takes a tensor, or values by name; it got both: loss"):
        tg.log(x, loss=1)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({}, TypeError, "nothing to record"),
        ({"step": 1}, TypeError, "nothing to record"),
        ({"loss": "0.5"}, TypeError, "got a str as 'loss'"),
        ({"loss": None}, TypeError, "got a NoneType as 'loss'"),
        ({"loss": 1j}, TypeError, "got a complex as 'loss'"),
        ({"loss": [1.0]}, TypeError, "got a list as 'loss'"),
        ({"loss": np.ones(2)}, ValueError, "got 2 elements as 'loss'"),
        ({"loss": tg.ones(2, 3)}, ValueError, "got 6 elements as 'loss'"),
        ({"loss": 10**400}, ValueError, "too large"),
        ({"loss": 1, "step": 1.0}, TypeError, "step must be an integer"),
        ({"loss": 1, "step": 2**63}, ValueError, "64 bits"),
        ({"a b": 1}, ValueError, "name 'a b'"),
        ({"": 1}, ValueError, "name ''"),
        ({"a//b": 1}, ValueError, "name 'a//b'"),
        ({"\x1b[2J": 1}, ValueError, "name '\\\\x1b"),
        ({"a" * 101: 1}, ValueError, "at most 100 characters"),
        ({"good": 1, "1bad": 1}, ValueError, "name '1bad'"),
    ],
)
def test_what_is_refused_names_the_argument_and_records_nothing(log, arguments, error, text):
    with pytest.raises(error, match=text):
        tg.log(**arguments)
    assert log.series() == {}


def test_groups_have_names(log):
    tg.log(**{"train/loss": 1, "valid.loss": 2})
    assert list(log.series()) == ["train/loss", "valid.loss"]


def test_a_series_keeps_few_values_spread_evenly():
    series = Series()
    for step in range(10_000):
        series.add(Point(step, float(step), 0.0))
        assert len(series._points) <= MOST_POINTS
    steps = [each.step for each in series.points()]
    assert steps[0] == 0 and steps[-1] == 9999 and series.count == 10_000 and len(steps) >= MOST_POINTS // 2
    assert len({later - earlier for earlier, later in itertools.pairwise(steps[:-1])}) == 1


def test_the_first_value_that_is_no_number_is_noted(log):
    for step, value in enumerate([1.0, math.nan, 2.0, math.inf]):
        tg.log(loss=value, step=step)
    assert log.series()["loss"].first_not_finite == 1


def test_too_many_names_are_dropped_with_one_warning(log):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(MOST_NAMES + 50):
            tg.log(**{f"name{number}": number})
        tg.log(name0=5)
    assert [each.filename for each in caught] == [__file__] and "'name1000'" in str(caught[0].message)
    assert len(log.series()) == MOST_NAMES and log.dropped == 50 and last(log, "name0") == (1, 5.0)


def test_no_value_of_many_threads_is_lost(log):
    def work():
        for step in range(500):
            tg.log(loss=step, other=1.0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.count for each in log.series().values()] == [4000, 4000]


def test_a_value_that_is_logged_while_another_one_is_moved_comes_after_it(log):
    def sink(name, point):
        if name == "outer":
            tg.log(inner=point.value)  # as a signal handler would, in the same thread

    log.add_sink(sink)
    tg.log(outer=1.0)
    assert list(log.series()) == ["outer", "inner"]


def test_a_forked_child_logs_although_a_thread_of_its_parent_held_the_lock(log):
    log._moving.acquire()
    tg.log(loss=1)
    assert log.series() == {}
    log.forked()
    tg.log(loss=2)
    assert log.series()["loss"].count == 2


def test_a_loop_has_its_position():
    seen = []
    for item in tg.progress([5, 6, 7], description="epoch"):
        (loop,) = [each for each in loops() if each.description == "epoch"]
        seen.append((item, loop.done, loop.total, loop.ended))
    assert seen == [(5, 0, 3, None), (6, 1, 3, None), (7, 2, 3, None)]
    assert loop.done == 3 and loop.ended is not None and loop.seconds() >= 0


def test_a_loop_that_is_left_has_ended():
    iterator = tg.progress(iter(range(10)), description="left")
    assert [next(iterator), next(iterator)] == [0, 1]
    iterator.close()
    (loop,) = [each for each in loops() if each.description == "left"]
    assert (loop.done, loop.total) == (1, None) and loop.ended is not None


def test_a_loop_replaces_ended_ones_of_its_name_and_few_are_kept():
    for _ in range(3):
        assert list(tg.progress(range(2), total=2, description="inner")) == [0, 1]
    assert [each.description for each in loops()].count("inner") == 1
    running = [tg.progress(range(2), description=f"loop{number}") for number in range(MOST_LOOPS + 20)]
    for each in running:
        next(each)
    assert len(loops()) == MOST_LOOPS
    for each in running:
        each.close()


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"iterable": 3}, TypeError, "takes an iterable, not int"),
        ({"iterable": [], "total": -1}, ValueError, "total=-1"),
        ({"iterable": [], "total": "3"}, TypeError, "total='3'"),
        ({"iterable": [], "description": 3}, TypeError, "description=3"),
    ],
)
def test_what_is_no_loop_is_refused_at_once(arguments, error, text):
    with pytest.raises(error, match=text):
        tg.progress(**arguments)


def test_an_asynchronous_iterable_is_refused():
    async def items():
        yield 1

    with pytest.raises(TypeError, match="takes an iterable, not async_generator: iterate over it yourself"):
        tg.progress(items())
