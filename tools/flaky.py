"""Command that runs tests many times under load, and lists those that fail now and then, the worst first.

    python -m telegrad.tools.flaky --times 20 --minutes 30 tests/rpc

The tests are put in a random order and cut into pieces; each piece runs so many times, several tests side by side, beside busy
loops on every core. Without paths it takes the tests that start processes. When the time is over it ends with the piece's
current run, so that a night's work can be done in parts, each with another seed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .test_runs import Failure, TestRun, run

PIECE = 100  # tests that run in one process of pytest
RUN_SECONDS = 1800.0
LINES = 40  # of a failure that are shown
DEFAULT_TESTS = ("-m", "processes and not soak")


@dataclass
class Tally:
    """Number of runs and failures of each test.

    Args:
        runs: runs of a test by its id.
        failures: failures of a test by its id.
        ended: runs of pytest that did not come to their end.
    """

    runs: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    ended: int = 0

    def add(self, done: TestRun) -> None:
        """Count what one run of pytest tells."""
        self.runs.update(done.passed | done.failures.keys())
        for test, failure in done.failures.items():
            self.failures.setdefault(test, []).append(failure)
        self.ended += done.status is None

    def worst_first(self) -> list[str]:
        """Return the tests that failed, those that failed in the largest part of their runs first."""
        return sorted(self.failures, key=lambda test: (-len(self.failures[test]) / self.runs[test], test))

    def summary(self) -> str:
        """Return the numbers of failures and runs."""
        failures = sum(map(len, self.failures.values()))
        return f"{self.runs.total()} runs of {len(self.runs)} tests: {failures} failures of {len(self.failures)} tests"

    def table(self) -> str:
        """Return a row for each test that failed, with its first failure, and a last row of sums."""
        rows = []
        for test in self.worst_first():
            failures = self.failures[test]
            rows.append(f"{len(failures):3} of {self.runs[test]:3}  {test} ({failures[0].phase})")
            rows += [f"            {line}" for line in failures[0].message.splitlines()[:LINES]]
        rows.append(self.summary())
        if self.ended:
            rows.append(f"{self.ended} runs of pytest did not come to their end")
        return "\n".join(rows)


def collect(arguments: Sequence[str]) -> list[str]:
    """Return the ids of the tests that pytest finds with these arguments.

    Raises:
        SystemExit: it finds none, or cannot collect them.
    """
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    if done.returncode or not tests:
        sys.exit(f"pytest finds no tests with {' '.join(arguments)}:\n{done.stdout}")
    return tests


def pieces(tests: Sequence[str], seed: int) -> Iterator[Sequence[str]]:
    """Yield the tests in a random order, in pieces."""
    order = random.Random(seed).sample(tests, len(tests))
    for first in range(0, len(order), PIECE):
        yield order[first : first + PIECE]


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep so many processes busy in the block."""
    loops = [multiprocessing.Process(target=_loop, daemon=True) for _ in range(count)]
    for each in loops:
        each.start()
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.join()


def _loop() -> None:
    parent = multiprocessing.parent_process()
    while parent is not None and parent.is_alive():  # it may be killed, and cannot end this process then
        sum(range(100_000))


def flaky(tests: Sequence[str], times: int, minutes: float, load: int, seed: int) -> Tally:
    """Run the tests, and return what happened.

    Args:
        tests: pytest's ids.
        times: how often each runs.
        minutes: time after which no further run begins.
        load: number of busy loops beside.
        seed: of the order.
    """
    tally, until = Tally(), time.monotonic() + minutes * 60
    side_by_side = ["-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal"]
    with busy_loops(load):
        for piece in pieces(tests, seed):
            for _ in range(times):
                if time.monotonic() > until:
                    return tally
                tally.add(run([*side_by_side, *piece], RUN_SECONDS, quiet=True))
                print(tally.summary(), flush=True)
    return tally


def main() -> None:
    """Run the command; what it does not know goes to pytest, to choose tests."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.flaky", description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="how often each test runs (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=30.0, help="no further run begins then (default: %(default)g)")
    parser.add_argument("--load", type=int, default=os.cpu_count(), help="busy loops (default: one for each core)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the tests' order")
    given, arguments = parser.parse_known_args()
    tests = collect(arguments or DEFAULT_TESTS)
    print(f"{len(tests)} tests, {given.times} times, {given.load} busy loops, seed {given.seed}", flush=True)
    tally = flaky(tests, given.times, given.minutes, given.load, given.seed)
    print(tally.table())
    sys.exit(bool(tally.failures) or bool(tally.ended))


if __name__ == "__main__":
    main()
