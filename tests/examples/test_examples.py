"""Examples: they run as ``docs/examples.md`` says, with and without the launcher, and leave nothing on any worker."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import telegrad.examples
from safetensors.numpy import load_file
from telegrad.examples.ps_options import Options, parse

pytestmark = pytest.mark.processes

FOLDER = Path(telegrad.examples.__file__).parent
LAUNCHER = ["-c", "from telegrad.launcher.cli import main; main()"]
LIMIT_S = 120
TIDY = "tidy: 0 pending calls, 0 references, 0 contexts"


def under_launcher(count, script, *args):
    return [*LAUNCHER, "run", "-n", str(count), str(FOLDER / script), *args]


def alone(script, *args):
    return [FOLDER / script, *args]


def as_module(count, module):
    return [*LAUNCHER, "run", "-n", str(count), "-m", f"telegrad.examples.{module}"]


@pytest.mark.parametrize(
    "command", [under_launcher(2, "hello_rpc.py"), alone("hello_rpc.py"), as_module(2, "hello_rpc")]
)
def test_hello_rpc(command, tmp_path, run_python):
    output = run_python(*command, cwd=tmp_path)
    for line in ("saluton, alice, from bob", "await: [0.5, 0.25, 0.125]", "lambda: 42", "ZeroDivisionError"):
        assert line in output
    assert output.count(TIDY) == 2


@pytest.mark.parametrize(
    "command", [under_launcher(2, "rref_tour.py"), alone("rref_tour.py"), as_module(2, "rref_tour")]
)
def test_rref_tour(command, tmp_path, run_python):
    output = run_python(*command, cwd=tmp_path)
    for line in ("owned by bob", "rpc_sync: 41", "results: [10, 11, 12]", "call back: 105", "ValueError"):
        assert line in output
    assert output.count(TIDY) == 2


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_the_parameter_server_learns(mode, tmp_path, run_python):
    command = under_launcher(3, "parameter_server.py", "--mode", mode, "--epochs", "5", "--out", "here")
    output = run_python(*command, cwd=tmp_path)
    found = re.search(r"accuracy of the checkpoint on the held-out fifth: ([\d.]+)%", output)
    assert found and float(found[1]) > 90.0, output
    assert output.count(TIDY) == 3
    state = load_file(tmp_path / "here" / "model.safetensors")
    assert all(np.isfinite(array).all() for array in state.values())
    assert (tmp_path / "here" / "training.png").read_bytes().startswith(b"\x89PNG")


def test_distributed_gradients_equal_those_of_one_process(tmp_path, run_python):
    output = run_python(*alone("parameter_server.py", "--check", "--trainers", "3", "--batch-size", "8"), cwd=tmp_path)
    found = re.search(r"gradients: (\S+) <= 1e-09", output)
    assert found and float(found[1]) <= 1e-9
    assert "the gradients agree" in output


def test_a_killed_trainer_ends_the_job(tmp_path):
    # Interpreters of their own: the environment of a forked worker cannot be read from outside.
    command = [*LAUNCHER, "run", "--no-preload", "-n", "3", str(FOLDER / "parameter_server.py"), "--epochs", "100000"]
    with subprocess.Popen(
        [sys.executable, *command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        try:
            workers = wait_for_workers(job.pid, 3)
            os.kill(workers["worker2"], signal.SIGKILL)
            killed = time.monotonic()
            _, errors = job.communicate(timeout=LIMIT_S)
        finally:
            job.kill()
    assert time.monotonic() - killed < 30, "not before a call timed out"
    assert job.returncode != 0
    assert "root cause: worker2" in errors and "SIGKILL" in errors


def wait_for_workers(launcher, count):
    """Return the process ids of a job's workers by name, once there are ``count``."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found = {}
        for process in psutil.Process(launcher).children(recursive=True):
            try:
                name = process.environ().get("TELEGRAD_WORKER")
            except psutil.Error:
                continue
            if name:
                found[name] = process.pid
        if len(found) == count:
            return found
        time.sleep(0.05)
    raise TimeoutError(f"the job did not start its {count} workers")


def test_too_few_workers_are_refused(tmp_path, run_python):
    for script, count, words in (("parameter_server.py", 1, "at least two"), ("hello_rpc.py", 3, "two workers")):
        assert words in run_python(*under_launcher(count, script), code=1, cwd=tmp_path)


@pytest.mark.parametrize("words", [["--epochs", "0"], ["--epochs", "x"], ["--mode", "fast"], ["--batch-size", "-1"]])
def test_bad_options_are_refused(words, capsys):
    with pytest.raises(SystemExit) as refused:
        parse(words)
    assert refused.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_options_on_the_command_line():
    options, check = parse(["--mode", "async", "--lr", "0.5", "--check", "--out", "x"])
    assert check and options == Options(mode="async", lr=0.5, out=Path("x"))


def test_the_learning_rate_only_falls():
    options = Options()
    rates = [options.rate(epoch) for epoch in range(options.epochs)]
    assert rates[0] == options.lr and rates == sorted(rates, reverse=True) and rates[-1] > 0.0
