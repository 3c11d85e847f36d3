"""The runner records what a contender answers and why it does not, and leaves no process."""

import os
import sys

import psutil
import pytest
from telegrad.benchmarks.results import Results, Source
from telegrad.benchmarks.runner import Contender

pytestmark = pytest.mark.processes

READY = 'import sys; print(\'{"ready": {"test": "1"}}\', flush=True)\n'
ANSWER = 'for line in sys.stdin: print(\'{"figures": {"p50": 2.0}}\', flush=True)'


class Started(Contender):
    """Contender that runs a program."""

    def __init__(self, source, spins=False):
        super().__init__(Source("test"), Results(), [sys.executable, "-c", source], spins=spins)

    def __enter__(self):
        super().__enter__()
        self.await_ready()
        return self

    def measured(self, case):
        return self.results.find(case, "test")


def test_answers_are_kept_by_case():
    with Started(READY + ANSWER) as asked:
        for _ in range(2):
            asked.ask("no-op", 0.0)
    assert asked.measured("no-op").values("p50") == [2.0, 2.0] and asked.source.versions == {"test": "1"}


def test_one_that_spins_is_stopped_while_it_is_not_asked():
    with Started(READY + ANSWER, spins=True) as asked:
        for _ in range(2):
            os.waitid(os.P_PID, asked._process.pid, os.WSTOPPED)
            asked.ask("no-op", 0.0)
    assert asked.measured("no-op").values("p50") == [2.0, 2.0] and not asked.measured("exit").error


@pytest.mark.parametrize("kind", ["error", "absent"])
def test_a_case_that_has_no_figures_is_not_asked_again(kind):
    answer = f'print(\'{{"{kind}": "no"}}\', flush=True); sys.stdin.read()'
    with Started(READY + "sys.stdin.readline(); " + answer) as asked:
        for _ in range(2):
            asked.ask("no-op", 0.0)
    assert getattr(asked.measured("no-op"), kind) == "no"


def test_a_contender_that_dies_is_reported_with_the_end_of_its_output():
    with Started(READY + "sys.stdin.readline(); sys.exit('too tired')") as asked:
        asked.ask("no-op", 0.0)
        asked.ask("1 KiB echo", 0.0)
    assert "too tired" in asked.measured("no-op").error
    assert "ended in the case no-op" in asked.measured("1 KiB echo").error


def test_a_contender_that_cannot_start_is_missing_and_not_asked():
    with Started("raise OSError('no lane')") as asked:
        asked.ask("no-op", 0.0)
    assert "no lane" in asked.source.missing and not asked.results.measurements


def test_a_contender_that_ends_with_an_error_is_reported():
    with Started(READY + "sys.stdin.read(); sys.exit(3)"):
        pass
    with Started(READY + "sys.stdin.read(); sys.exit(3)") as asked:
        pass
    assert "status 3" in asked.measured("exit").error


@pytest.mark.slow
def test_the_children_of_a_contender_die_with_it():
    source = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        'print(\'{"ready": {"child": "%d"}}\' % child.pid, flush=True)\n'
        "sys.stdin.read()"
    )
    with Started(source) as started:
        child = psutil.Process(int(started.source.versions["child"]))
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
