"""``launch``: a job run from Python, and its result."""

import io
import os
import signal
import threading

import pytest
from helpers.programs import ending_within
from telegrad.launcher import JobSpec, launch, progress

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def watchdog():
    with ending_within(60):
        yield


@pytest.fixture
def spec(tmp_path):
    """Return the spec of a job of the workers `a` and `b`, of which the second fails."""
    script = tmp_path / "script.py"
    script.write_text("import os, sys\nprint('hello')\nif os.environ['RANK'] == '1': sys.exit(5)")
    return JobSpec(str(script), workers=("a", "b"), log_dir=tmp_path / "logs")


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_job_can_be_run_in_any_thread_and_leaves_the_process_as_it_was(spec, in_thread, monkeypatch):
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.0)
    stream, results, told = io.StringIO(), [], []
    descriptors, handler = sorted(os.listdir("/proc/self/fd")), signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: results.append(launch(spec, stream, tell=told.append)))
    if in_thread:
        thread.start()
        thread.join()
    else:
        thread.run()
    (result,) = results
    assert told[0] == f"starts 2 workers: a, b; logs: {spec.log_dir}/"
    assert any("without output" in line for line in told)
    assert "b | hello\n" in stream.getvalue()
    assert (result.exit_code, result.cause, result.interrupted_by) == (5, result.workers[1], None)
    assert [(worker.name, worker.rank) for worker in result.workers] == [("a", 0), ("b", 1)]
    assert result.cause.code == 5 and 0 < result.cause.after <= result.seconds
    assert result.cause.log.read_text() == "hello\n" and result.log_dir == spec.log_dir
    assert sorted(os.listdir("/proc/self/fd")) == descriptors and signal.getsignal(signal.SIGINT) is handler


def test_a_log_on_a_full_disk_is_told_and_ends_nothing(spec, capsys):
    spec.log_dir.mkdir()
    (spec.log_dir / "b.log").symlink_to("/dev/full")
    assert launch(spec).exit_code == 5
    out, err = capsys.readouterr()
    assert "b | hello\n" in out
    assert err.startswith("telegrad: the log of b ends here, it cannot be written: [Errno 28]") and err.count("\n") == 1
