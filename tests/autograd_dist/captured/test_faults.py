"""Compiled steps of real processes: callees that are killed, stopped or started again, and steps that are cancelled."""

import signal

import pytest
from helpers.programs import PROGRAMS

pytestmark = pytest.mark.processes
ERRORS = {"killed": "WorkerLostError victim", "stopped": "RpcTimeoutError", "interrupted": "KeyboardInterrupt"}


@pytest.mark.slow
def test_faults_in_the_middle_of_a_step_are_those_of_eager_code(forked_job):
    workers = forked_job("captured_faults", 4)
    workers.wait(codes=[0, -signal.SIGKILL, -signal.SIGKILL, 0])
    lines = [each.split("|")[1:] for each in workers.output(0).splitlines() if each.startswith("scene|")]
    assert [name for name, _, _ in lines] == [*ERRORS, "cancelled", "forgotten", "two_threads"], workers.output(0)
    for name, eager, compiled in lines:
        assert compiled == eager, name
        assert ERRORS.get(name, "") in eager


@pytest.mark.long
@pytest.mark.slow
def test_a_callee_that_is_killed_and_started_again_between_two_replays(tmp_path, run_python):
    command = ["-c", "from telegrad.launcher.cli import main; main()", "run", "-n", 2, "--restart", "one"]
    out = run_python(*command, PROGRAMS / "captured_restarted.py", cwd=tmp_path)
    assert "before 3 True" in out
    assert "after 3 True" in out  # of a new plan
