"""Both launchers name the worker that failed, not one that lost it. ``programs/root_cause.py`` counts over many runs."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

PROGRAM = Path(__file__).parents[1] / "programs" / "root_cause.py"


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Runs the counting program; it exits with 1 if a verdict was wrong."""
    monkeypatch.delenv("TELEGRAD_WORKER", raising=False)

    def judge(*arguments):
        command = [sys.executable, str(PROGRAM), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    return judge


@pytest.mark.parametrize("launcher", ["run", "spawn"])
@pytest.mark.parametrize("case", ["serving", "pending", "polling", "short"])
def test_the_worker_that_raises_is_the_cause(judged, launcher, case):
    judged("--runs", "2", "--launchers", launcher, "--cases", case)


@pytest.mark.parametrize("launcher", ["run", "spawn"])
def test_also_at_the_end_of_a_chain_of_calls(judged, launcher):
    judged("--runs", "1", "--size", "4", "--launchers", launcher, "--cases", "chain")


@pytest.mark.parametrize("how", ["hook", "leave", "exit", "os._exit", "kill", "crash", "forgotten"])
def test_however_it_ends(judged, how):
    judged("--runs", "1", "--launchers", "run", "--cases", "pending", "--hows", how)


@pytest.mark.parametrize("how", ["leave", "exit", "kill"])
def test_however_a_spawned_one_ends(judged, how):
    judged("--runs", "1", "--launchers", "spawn", "--cases", "pending", "--hows", how)
