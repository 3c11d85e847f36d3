"""Elastic training under ``telegrad run --restart one``: a worker that is killed comes back, and gets the state."""

import subprocess
from pathlib import Path

import pytest
from helpers.launched import LAUNCHER

PROGRAM = Path(__file__).parents[2] / "programs" / "elastic_restarted.py"
SECONDS = 120
pytestmark = pytest.mark.processes


def run(folder, victim):
    """Run a job of three workers; return what each printed."""
    command = [*LAUNCHER, "run", "-n", "3", "--restart", "one", str(PROGRAM), "30", "12", victim]
    ended = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=SECONDS)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ("restarts: 1" in ended.stderr + ended.stdout) == (victim != "nobody")
    return sorted(line.partition("| ")[2] for line in ended.stdout.splitlines() if " steps " in line)


def test_workers_that_are_started_again_leave_no_trace_in_the_weights(tmp_path):
    undisturbed = run(tmp_path, "nobody")
    assert len(undisturbed) == 3 and len(set(undisturbed)) == 1 and undisturbed[0].startswith("30 steps ")
    for victim in ("worker0", "worker2"):
        assert run(tmp_path, victim) == undisturbed
