"""Parameter server with ``--checkpoint``: every update once, though server and trainers are killed; and more epochs later."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "programs" / "killed_parameter_server.py"
STEPS = 22 * 2  # updates of an epoch: those of two trainers


def run(folder, epochs):
    command = [
        sys.executable,
        "-c",
        "from telegrad.launcher.cli import main; main()",
        "run",
        "-n",
        "3",
        "--restart",
        "one",
        str(PROGRAM),
    ]
    options = ["--checkpoint", str(folder / "saved"), "--epochs", str(epochs), "--quiet"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.processes
@pytest.mark.slow
def test_each_batch_changes_the_parameters_once_though_server_and_trainer_are_killed(tmp_path):
    text = run(tmp_path, 4)
    assert f"{4 * STEPS} updates, each once" in text, text
    assert text.count("died of SIGKILL") == 2 * 2, text  # the line of each, and in the summary
    assert f"{5 * STEPS} updates, each once" in run(tmp_path, 5)
