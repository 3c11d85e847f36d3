"""Series and loops that programs log, as a part of the observation of their workers."""

import json
import math

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.core.recording import ProgramLog, process_log
from telegrad.rpc.observing.json_records import decode_record, encode_record
from telegrad.rpc.observing.logged import MOST_OBSERVED_POINTS, observe_series
from telegrad.rpc.observing.records import Observation
from telegrad.testing import in_process_cluster


@pytest.fixture(autouse=True)
def log(monkeypatch):
    """Return a new log of the process."""
    monkeypatch.setattr(process_log, "_log", ProgramLog())


def test_series_and_loops_of_a_worker_are_observed():
    with in_process_cluster("a", "b") as (a, _), a.use():
        for step in tg.progress(range(3), description="train"):
            tg.log(loss=1 / (step + 1), step=step)
        (seen,) = rpc.observe("b")
    (series,) = seen.logged
    assert (series.name, series.count, series.step, series.last) == ("loss", 3, 2, 1 / 3)
    assert (series.steps, series.values) == ([0, 1, 2], [1.0, 0.5, 1 / 3]) and series.first_not_finite is None
    (loop,) = [each for each in seen.loops if each.description == "train"]
    assert (loop.done, loop.total, loop.ended) == (3, 3, True) and loop.rate > 0 and loop.seconds > 0
    assert seen.totals["logged"] == 1


def test_values_that_are_no_numbers_are_strict_json():
    tg.log(loss=1.0)
    tg.log(loss=math.nan)
    (series,) = observe_series()
    assert (series.last, series.values, series.first_not_finite) == (None, [1.0, None], 1)
    data = encode_record(Observation("a", 0, 0, logged=[series]))
    json.loads(data, parse_constant=pytest.fail)
    assert decode_record(Observation, data, 10_000).logged == [series]


def test_many_series_show_fewer_values_each():
    for step in range(300):
        tg.log(**{f"name{number}": step for number in range(100)})
    seen = observe_series()
    assert len(seen) == 100 and sum(len(each.values) for each in seen) <= MOST_OBSERVED_POINTS
    assert {each.steps[0] for each in seen} == {0} and {each.steps[-1] for each in seen} == {299}
