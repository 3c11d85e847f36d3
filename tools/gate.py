"""Command that runs pytest with its arguments, repeats alone what failed, and judges. Chance does not fail a run, but is told.

A test with real processes may fail by a race that is not its change's. So each test that failed is run once more when all
others have ended, alone, in a process of its own. What passes then is told, with its first failure: it is a race that has not
been found yet (``flaky.py`` looks for it). The run fails if a test fails twice, or if more than ``MOST_REPEATED`` tests failed.

Never repeated: errors of collection, pytest's internal errors, a process that crashed, and a test that passed but left
something behind. These do not come from a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from .test_runs import CRASHED, Failure, TestRun, run

MOST_REPEATED = 5
RUN_SECONDS = 3000.0
REPEAT_SECONDS = 600.0
TESTS_FAILED = 1  # pytest's exit status if all tests ran, and some of them failed


@dataclass(slots=True)
class Verdict:
    """Judgement of the first run.

    Args:
        refused: why the run fails, whatever a repetition would bring; empty if it may still pass.
        repeat: failures to repeat.
    """

    refused: str
    repeat: Sequence[Failure] = ()


def judge(first: TestRun) -> Verdict:
    """Return whether the run fails for good, and else which tests to repeat."""
    failures = list(first.failures.values())
    if first.status is None:
        return Verdict("pytest ended before the run was over")
    if failed := [each.test for each in failures if each.phase == "collect"]:
        return Verdict(f"could not be collected: {', '.join(failed)}")
    if first.status not in (0, TESTS_FAILED) or (first.status and not failures):
        return Verdict(f"pytest could not run the tests (its exit status is {first.status})")
    if crashed := [each.test for each in failures if each.phase == CRASHED]:
        return Verdict(f"ended their process: {', '.join(crashed)}")
    if leaks := [each.test for each in failures if each.is_leak]:
        return Verdict(f"left something behind: {', '.join(leaks)}")
    if len(failures) > MOST_REPEATED:
        return Verdict(f"{len(failures)} tests failed; at most {MOST_REPEATED} are repeated")
    return Verdict("", failures)


def gate(arguments: Sequence[str]) -> bool:
    """Run pytest with these arguments, repeat what failed, print the judgement, and return whether the tests pass."""
    first = run(arguments, RUN_SECONDS)
    verdict = judge(first)
    twice: list[Failure] = []
    chance: list[Failure] = []
    for number, failure in enumerate(verdict.repeat, 1):
        print(f"\n== repeated alone, {number} of {len(verdict.repeat)}: {failure.test}", flush=True)
        again = run([failure.test], REPEAT_SECONDS)
        (chance if again.status == 0 and failure.test in again.passed else twice).append(failure)
    _report(first, verdict, twice, chance)
    return not (verdict.refused or twice)


def _report(first: TestRun, verdict: Verdict, twice: Sequence[Failure], chance: Sequence[Failure]) -> None:
    print()
    for reason, count in sorted(first.skipped.items()):
        print(f"skipped: {count} ({reason})")
    failed = list(first.failures.values()) if verdict.refused else twice
    _list("passed only when repeated", chance)
    _list("failed", failed)
    if verdict.refused:
        print(f"== refused: {verdict.refused}")
    print(
        f"{len(first.passed) + len(chance)} passed, {len(failed)} failed, {first.skipped.total()} skipped", flush=True
    )


def _list(title: str, failures: Sequence[Failure]) -> None:
    """Print failures, each with the message of its first one, and their number."""
    if failures:
        print(f"== {title}: {len(failures)}")
    for each in failures:
        phase = "its process" if each.phase == CRASHED else each.phase
        print(f"{each.test} ({phase})", *each.message.splitlines()[:8], sep="\n    ")


if __name__ == "__main__":
    sys.exit(not gate(sys.argv[1:]))
