"""The gate: what fails once passes and is told, what fails twice fails the run, and what is never chance is not repeated."""

import pytest
from telegrad.testing.leaks import LEFT_BEHIND
from telegrad.tools.gate import MOST_REPEATED, judge
from telegrad.tools.test_runs import CRASHED, Failure, TestRun, read

SIDE_BY_SIDE = ("-n", "2")
FAILED = Failure("a.py::test", "call", "AssertionError: no")
ONCE = """
from pathlib import Path

def test_that_fails_once():
    mark = Path(__file__).with_name("mark")
    first = not mark.exists()
    mark.touch()
    assert not first, "by chance"
"""
ALWAYS = "def test_that_always_fails():\n    assert not 'always'\n"
CRASHES = "import os\n\ndef test_that_ends_its_process():\n    os._exit(1)\n"
PASSES = """
import pytest

def test_that_passes():
    pass

@pytest.mark.skip(reason="no browser")
def test_page():
    pass
"""
UNREADABLE = "import nothing_of_that_name\n"
LEAVES = f"""
import pytest

@pytest.fixture
def watched():
    yield
    pytest.fail("{LEFT_BEHIND}: a thread", pytrace=False)

def test_that_leaves_a_thread(watched):
    pass
"""


@pytest.fixture
def gate(tmp_path, run_python):
    """``gate(code, *sources)`` writes files of tests and lets the gate run them; returns what it prints."""

    def run(code, *sources, options=()):
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
        for number, source in enumerate(sources):
            (tmp_path / f"test_{number}.py").write_text(source)
        return run_python("-m", "telegrad.tools.gate", *options, "-p", "no:cacheprovider", code=code, cwd=tmp_path)

    return run


def test_what_fails_once_passes_and_is_told(gate):
    text = gate(0, ONCE, PASSES, options=SIDE_BY_SIDE)
    assert "== repeated alone, 1 of 1: test_0.py::test_that_fails_once" in text
    told = text.partition("== passed only when repeated: 1\n")[2]
    assert told.startswith("test_0.py::test_that_fails_once (call)\n    AssertionError: by chance")
    assert "skipped: 1 (no browser)" in text and text.endswith("2 passed, 0 failed, 1 skipped\n")


def test_what_fails_twice_fails_the_run(gate):
    text = gate(1, ALWAYS, ONCE)
    assert "== passed only when repeated: 1\ntest_1.py::test_that_fails_once" in text
    assert "== failed: 1\ntest_0.py::test_that_always_fails" in text and "1 passed, 1 failed, 0 skipped\n" in text


@pytest.mark.parametrize(
    "source, why",
    [
        (CRASHES, "ended their process: test_0.py::test_that_ends_its_process"),
        (UNREADABLE, "could not be collected: test_0.py"),
        (LEAVES, "left something behind: test_0.py::test_that_leaves_a_thread"),
    ],
)
def test_what_is_never_chance_is_not_repeated(gate, source, why):
    text = gate(1, source, PASSES, ONCE, options=SIDE_BY_SIDE if source == CRASHES else ())
    assert f"== refused: {why}" in text and "repeated alone" not in text


def test_more_failures_than_chance_makes_are_not_repeated(gate):
    text = gate(1, *[ALWAYS] * (MOST_REPEATED + 1))
    assert "6 tests failed; at most 5 are repeated" in text and "repeated alone" not in text and "== failed: 6" in text


def failures(*given):
    return TestRun(1, failures={f"{number}": each for number, each in enumerate(given)})


@pytest.mark.parametrize(
    "first, refused",
    [
        (TestRun(None), "ended before the run was over"),
        (TestRun(None, failures={"a": FAILED}), "ended before the run was over"),
        (TestRun(2, failures={"a": FAILED}), "exit status is 2"),
        (TestRun(3), "exit status is 3"),
        (TestRun(5), "exit status is 5"),
        (TestRun(1), "exit status is 1"),
        (failures(FAILED, Failure("a.py::other", CRASHED, "worker 'gw0' crashed")), "ended their process: a.py::other"),
        (failures(Failure("a.py::other", "teardown", f"{LEFT_BEHIND}:\n  a thread")), "left something behind"),
    ],
)
def test_runs_that_are_refused(first, refused):
    verdict = judge(first)
    assert refused in verdict.refused and not verdict.repeat


@pytest.mark.parametrize(
    "first",
    [
        TestRun(0, passed={"a"}),
        failures(FAILED),
        failures(Failure("a.py::test", "setup", "TimeoutError: the fixture")),
        failures(Failure("a.py::test", "teardown", "AssertionError: not closed")),
        failures(*[FAILED] * MOST_REPEATED),
    ],
)
def test_runs_that_may_pass(first):
    verdict = judge(first)
    assert not verdict.refused and list(verdict.repeat) == list(first.failures.values())


def report(test, when, outcome, text="null"):
    return f'{{"$report_type": "TestReport", "nodeid": "{test}", "when": "{when}", "outcome": "{outcome}", "longrepr": {text}}}'


def test_a_test_that_failed_and_then_left_something_behind_counts_as_failed():
    """Leftovers of a failed test are mostly a consequence."""
    lines = [report("a", "call", "failed", '"no"'), report("a", "teardown", "failed", f'"{LEFT_BEHIND}: a thread"')]
    found = read(lines)
    assert found.failures["a"] == Failure("a", "call", "no") and not found.passed


def test_a_run_that_was_killed_has_no_status():
    found = read([report("a", "call", "passed"), report("a", "teardown", "passed"), '{"$report_type": "TestRep'])
    assert found.status is None and found.passed == {"a"}


def test_a_test_whose_teardown_fails_has_not_passed():
    found = read([report("a", "call", "passed"), report("a", "teardown", "failed", '"no"')])
    assert not found.passed and found.failures["a"].phase == "teardown"
