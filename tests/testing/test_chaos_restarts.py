"""``chaos --restarts``: its checks find what they are for, and a training whose worker is killed holds."""

import os
import re

import pytest
from telegrad.testing.chaos.restarts.command import planned, violations_of
from telegrad.testing.chaos.restarts.diary import BEGUN, DONE, FOLDER_VARIABLE, STEP, Diary, DiaryReader, Line
from telegrad.testing.chaos.restarts.job import Outcome, pause_after
from telegrad.testing.chaos.restarts.trainings import TRAININGS

TRAINING = TRAININGS["data_parallel"]
GOOD = [
    Line(BEGUN, 0, 7, 1.0),
    Line(STEP, 0, 7, 2.0, 1, "[1, 2]"),
    Line(STEP, 0, 7, 3.0, 2, "[3, 4]"),
    Line(DONE, 0, 7, 4.0, note="abc"),
]


def kinds(lines, code=0):
    found = violations_of(TRAINING, Outcome(code, lines, [], 1.0), Outcome(0, GOOD, [], 1.0))
    return [violation.kind for violation in found]


def test_a_training_that_took_a_step_again_is_good():
    again = [*GOOD[:2], Line(BEGUN, 0, 8, 2.2), *GOOD[1:]]
    assert kinds(GOOD) == kinds(again) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([*GOOD[:2], Line(STEP, 0, 7, 3.0, 2, "[1, 2]"), GOOD[3]], ["samples"]),
        ([*GOOD, Line(STEP, 0, 7, 3.0, 3, "[5]")], ["samples"]),
        ([GOOD[0], *GOOD[2:]], ["left out"]),
        ([*GOOD[:3], Line(DONE, 0, 7, 4.0, note="abd")], ["weights"]),
        (GOOD[:3], ["weights"]),
    ],
)
def test_what_differs_from_the_undisturbed_training_is_found(lines, found):
    assert kinds(lines) == found


@pytest.mark.parametrize(("code", "text"), [(1, "ended with 1"), (None, "did not end")])
def test_the_exit_code_is_checked(code, text):
    (violation,) = violations_of(TRAINING, Outcome(code, GOOD, [], 1.0), Outcome(0, GOOD, [], 1.0))
    assert violation.kind == "exit code" and text in violation.text


def test_a_seed_kills_the_same_workers_each_time():
    plans = [planned(TRAINING, seed) for seed in range(50)]
    assert plans == [planned(TRAINING, seed) for seed in range(50)]
    assert {len(plan) for plan in plans} == {*range(1, TRAINING.most_kills + 1)}
    assert {kill.rank for plan in plans for kill in plan} == {*range(TRAINING.workers)}


def test_the_pause_ends_with_a_step_of_the_next_process():
    lines = [*GOOD[:2], Line(STEP, 1, 9, 2.3, 2), Line(BEGUN, 0, 8, 2.5), Line(STEP, 1, 9, 2.75, 2), GOOD[2]]
    assert pause_after(2.25, 0, lines) == 0.75
    assert pause_after(9.0, 0, lines) == float("inf")
    served = [Line(STEP, 0, 7, 2.6, 0, "ready"), Line(STEP, 1, 9, 2.75, 2)]  # worker 0 takes no steps itself
    assert pause_after(2.25, 0, [Line(BEGUN, 0, 8, 2.5), *served]) == 0.5


def test_a_diary_is_read_while_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv("RANK", "1")
    reader = DiaryReader(tmp_path, 2)
    assert reader.read() == []
    with Diary() as diary:
        diary.step(3, [4, 5])
        assert [(line.kind, line.rank, line.pid, line.step) for line in reader.read()] == [
            (BEGUN, 1, os.getpid(), 0),
            (STEP, 1, os.getpid(), 3),
        ]
        with (tmp_path / "diary-1").open("a") as file:
            file.write('{"kind": "st')  # of a process that was killed
        assert reader.read() == []
    assert [line.note for line in reader.lines] == ["", "[4, 5]"]


def test_a_training_whose_workers_are_killed(run_python):
    output = run_python("-m", "telegrad.testing.chaos", "--restarts", "--seeds", "1", "--training", "data_parallel")
    *_, times, last = output.splitlines()
    assert re.fullmatch(r"1 trainings, [12] workers killed: 1 as undisturbed, 0 not", last)
    assert times.startswith("first step after a death: ")


def test_wrong_options(run_python):
    output = run_python("-m", "telegrad.testing.chaos", "--restarts", "--seeds", "0", code=2)
    assert "--seeds must be at least 1; you gave 0" in output


def test_workers_that_came_late_to_an_elastic_training_have_the_same_weights():
    training = TRAININGS["elastic"]
    undisturbed = [*GOOD, Line(DONE, 1, 9, 4.0, note="abc")]
    for note, found in (("abc", []), ("abd", ["weights"])):
        lines = [*GOOD, Line(DONE, 1, 9, 4.0, note=note)]
        assert [each.kind for each in training.check(lines, undisturbed)] == found
    wrong = [*GOOD[:2], Line(STEP, 1, 9, 2.0, 1, "[3]"), *undisturbed[3:]]
    assert [each.kind for each in training.check(wrong, undisturbed)] == ["samples"]
