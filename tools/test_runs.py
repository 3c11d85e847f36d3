"""Runs of pytest in a process of its own, and which tests failed in them, read from pytest-reportlog's file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..testing.leaks import LEFT_BEHIND

CRASHED = "???"  # phase of the report that pytest-xdist makes for a test whose process has ended


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of a test, or of the collection of a file.

    Args:
        test: pytest's id of the test, or of the file.
        phase: ``setup``, ``call``, ``teardown``, ``collect``, or ``???`` if the test's process ended.
        message: the error's type and text.
    """

    test: str
    phase: str
    message: str

    @property
    def is_leak(self) -> bool:
        """Return whether the test passed, but left a thread, process, file, agent, reference or context behind."""
        return self.phase == "teardown" and LEFT_BEHIND in self.message


@dataclass(slots=True)
class TestRun:
    """Outcome of one run.

    Args:
        status: pytest's exit status; ``None`` if its process ended before the run was over.
        passed: ids of the tests that passed, to the end of their teardown.
        failures: the first failure of each test.
        skipped: number of skipped tests by reason.
    """

    __test__ = False  # pytest is not to collect it

    status: int | None = None
    passed: set[str] = field(default_factory=set)
    failures: dict[str, Failure] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)


def run(arguments: Sequence[str], seconds: float, quiet: bool = False) -> TestRun:
    """Run pytest with these arguments, and kill it when the time is over.

    Args:
        arguments: for pytest.
        seconds: time-out.
        quiet: do not show what pytest prints.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "reports.jsonl"
        output = subprocess.DEVNULL if quiet else None
        command = [sys.executable, "-m", "pytest", f"--report-log={log}", *arguments]
        try:
            subprocess.run(command, timeout=seconds, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        except subprocess.TimeoutExpired:
            print(f"\npytest did not end within {seconds:g} s, and was killed", flush=True)
        return read(log.read_text().splitlines() if log.exists() else [])


def read(lines: Iterable[str]) -> TestRun:
    """Return the run that the lines of a report log tell of."""
    found = TestRun()
    for line in lines:
        try:
            report = json.loads(line)
        except ValueError:  # pytest was killed as it wrote the line
            break
        match report["$report_type"]:
            case "SessionFinish":
                found.status = report["exitstatus"]
            case "CollectReport" | "TestReport":
                _add(found, report)
    return found


def _add(found: TestRun, report: dict[str, Any]) -> None:
    test, phase, outcome = report["nodeid"], report.get("when", "collect"), report["outcome"]
    if outcome == "failed":
        found.failures.setdefault(test, Failure(test, phase, _message(report["longrepr"])))
        found.passed.discard(test)
    elif outcome == "skipped":
        found.skipped[_message(report["longrepr"])] += 1
    elif phase == "call":
        found.passed.add(test)


def _message(representation: Any) -> str:
    """Return the text of an error or a reason to skip from one of the ways in which pytest writes them."""
    if isinstance(representation, dict):
        return str(representation["reprcrash"]["message"])
    if isinstance(representation, list):  # file, line and reason
        return str(representation[-1]).removeprefix("Skipped: ")
    return str(representation)
