"""The search for flaky tests: each runs many times, and those that fail come worst first."""

import os
import select
import subprocess
import sys

import pytest
from telegrad.tools.flaky import PIECE, Tally, pieces
from telegrad.tools.test_runs import Failure, TestRun

SOMETIMES = """
from pathlib import Path

def test_that_fails_each_other_time():
    runs = Path(__file__).with_name("runs")
    with open(runs, "a") as file:
        file.write(".")
    assert runs.stat().st_size % 2 == 0, "the first time"

def test_that_passes():
    pass
"""


def test_a_test_that_fails_now_and_then_is_found(tmp_path, run_python):
    (tmp_path / "test_it.py").write_text(SOMETIMES)
    arguments = ["--times", "2", "--load", "1", "--seed", "1", "-p", "no:cacheprovider", "test_it.py"]
    text = run_python("-m", "telegrad.tools.flaky", *arguments, cwd=tmp_path, code=1)
    assert "2 tests, 2 times, 1 busy loops, seed 1" in text
    assert (
        "  1 of   2  test_it.py::test_that_fails_each_other_time (call)\n            AssertionError: the first time"
        in text
    )
    assert "\n4 runs of 2 tests: 1 failures of 1 tests\n" in text


KILLED = """
import multiprocessing, signal
from telegrad.tools.flaky import busy_loops

with busy_loops(1):
    print(multiprocessing.active_children()[0].pid, flush=True)
    signal.pause()
"""


def test_busy_loops_end_after_the_command_was_killed():
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as killed:
        loop = os.pidfd_open(int(killed.stdout.readline()))
        killed.kill()
    try:
        assert select.select([loop], [], [], 60)[0]
    finally:
        os.close(loop)


def test_no_run_begins_when_the_time_is_over(tmp_path, run_python):
    (tmp_path / "test_it.py").write_text(SOMETIMES)
    text = run_python("-m", "telegrad.tools.flaky", "--minutes", "0", "test_it.py", cwd=tmp_path)
    assert text.endswith("0 runs of 0 tests: 0 failures of 0 tests\n")


def test_paths_without_tests_are_told(tmp_path, run_python):
    assert "pytest finds no tests with nothing.py" in run_python(
        "-m", "telegrad.tools.flaky", "nothing.py", cwd=tmp_path, code=1
    )


def test_the_worst_come_first():
    tally = Tally()
    for number in range(4):
        failing = [name for name, times in [("often", 3), ("seldom", 1)] if number < times]
        failed = {name: Failure(name, "call", "no") for name in failing}
        tally.add(TestRun(int(bool(failed)), {"often", "seldom", "never"} - failed.keys(), failed))
    tally.add(TestRun(None))
    assert tally.worst_first() == ["often", "seldom"] and tally.ended == 1
    assert "3 of   4  often (call)" in tally.table() and "1 runs of pytest did not come to their end" in tally.table()


@pytest.mark.parametrize("count", [1, PIECE, 2 * PIECE + 1])
def test_each_test_is_in_one_piece(count):
    tests = [str(number) for number in range(count)]
    cut = list(pieces(tests, seed=3))
    assert sorted(test for piece in cut for test in piece) == sorted(tests) and max(map(len, cut)) <= PIECE
    assert cut == list(pieces(tests, seed=3)) and (count == 1 or cut != list(pieces(tests, seed=4)))
