"""``telegrad run`` that is interrupted or killed: every worker ends, and nothing of it is left."""

import os
import re
import signal

import pytest
from helpers.launched import (
    LAUNCHER,
    LIMIT,
    STUBBORN,
    TOLD_WAITING,
    Watched,
    ended,
    pids_in,
    read_until,
    without_progress,
)

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("signum, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interruption_reaches_each_worker_once_and_leaves_nothing(job, signum, code):
    source = """
def told(signum, frame):
    print("told", signum, flush=True)
    sys.exit(0)
for signum in (signal.SIGINT, signal.SIGTERM): signal.signal(signum, told)
print("pid", os.getpid(), flush=True)
while True: signal.pause()
"""
    process = job(source, "-n", "2")
    watched = Watched(pids_in(read_until(process, 2, "pid")))
    os.killpg(process.pid, signum)  # as a terminal does
    out, err = ended(process, code)
    assert watched.all_died()
    told = signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM
    assert sorted(out.splitlines()) == [f"worker0 | told {told:d}", f"worker1 | told {told:d}"]
    assert err.startswith(f"telegrad: interrupted by {signum.name} ({signum:d}) after ")
    assert "Traceback" not in err


def test_a_second_ctrl_c_kills_at_once(job):
    source = """
signal.signal(signal.SIGINT, lambda *_: print("not now", flush=True))
print("waiting", flush=True)
while True: signal.pause()
"""
    process = job(source, "--grace", "1000")
    read_until(process, 1, "waiting")
    process.send_signal(signal.SIGINT)
    read_until(process, 1, "not now")
    process.send_signal(signal.SIGINT)
    _, err = ended(process, 130)
    assert "worker0: ended by the launcher with SIGKILL (9)" in err


def test_an_ignored_hangup_stays_ignored(job):
    """As under `nohup`."""
    process = job(TOLD_WAITING, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    read_until(process, 1, "waiting")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    ended(process, 143)


def test_workers_and_what_they_started_die_with_a_killed_launcher(job):
    process = job(STUBBORN + "while True: signal.pause()", "-n", "2")
    watched = Watched(pids_in(read_until(process, 8, "pid")))
    process.kill()
    assert watched.all_died()
    ended(process, -signal.SIGKILL)


def test_a_job_inside_a_worker_dies_with_it(job, tmp_path):
    (tmp_path / "inner.py").write_text("import os, signal\nprint('pid', os.getpid(), flush=True)\nsignal.pause()")
    process = job(f"subprocess.run([*{LAUNCHER!r}, 'run', '-n', '2', 'inner.py'])")
    watched = Watched(pids_in(read_until(process, 2, "pid")))
    process.kill()
    assert watched.all_died()
    ended(process, -signal.SIGKILL)


def test_a_job_whose_output_nobody_reads_any_more_ends(job):
    process = job("while True: print('more')", "-n", "2")
    read_until(process, 1, "more")
    process.stdout.close()
    assert process.wait(LIMIT) == 128 + signal.SIGPIPE
    err = without_progress(process.stderr.read())
    assert err.startswith("telegrad: interrupted by SIGPIPE (13)") and "Broken" not in err


def test_ctrl_c_is_told_in_four_lines_and_tracebacks_are_in_the_logs(job, tmp_path):
    process = job(
        "try:\n    print('waiting', flush=True)\n    while True: signal.pause()\nfinally: print('tidied')", "-n", "3"
    )
    read_until(process, 3, "waiting")
    process.send_signal(signal.SIGINT)
    out, err = ended(process, 130)
    assert sorted(out.splitlines()) == [f"worker{i} | tidied" for i in range(3)]
    assert [line.split(" after ")[0] for line in err.splitlines()[:3]] == [
        "telegrad: interrupted by SIGINT (2)",
        "the workers:",
        "    worker0, worker1, worker2: ended by the launcher with SIGINT (2)",
    ]
    assert err.count("\n") == 4
    log_dir = re.search(r"logs: (.*)/\n", err)[1]
    assert "\nKeyboardInterrupt\n" in (tmp_path / log_dir / "worker1.log").read_text()
