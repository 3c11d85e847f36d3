"""``telegrad top``, ``memory``, ``logs`` and ``kill``, on a job, and on records of processes that do not want to end."""

import json
import os
import subprocess
import sys

import pytest
from helpers.launched import ended, read_until, telegrad
from telegrad.base.processes import process_status
from telegrad.launcher.watching.logs import _Log

PROGRAM = """
import numpy as np
from telegrad import rpc

rpc.init_rpc()
print("one\\x1b[2J\\x07", flush=True)
if rpc.get_worker_info().id == 0:
    kept = rpc.remote("worker1", np.copy, args=(np.ones((500, 1000)),))
    kept.to_here()
    print("two\\nthree\\nready", flush=True)
    rpc.rpc_sync("worker1", signal.pause, timeout=0)
rpc.shutdown()
"""


@pytest.mark.slow
def test_a_job_is_watched_read_and_ended(here, job, until):
    process = job(PROGRAM, "-n", "2")
    read_until(process, 1, "ready")
    until(lambda: "4,000,0" in telegrad("memory", "--json").replace("40000", "4,000,0"))
    lines = telegrad("memory").splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["WORKER", "worker0", "worker1"]
    assert any(line.split()[:4] == ["worker1", "3.8", "MiB", "numpy.ndarray"] for line in lines)
    found = json.loads(telegrad("memory", "--json"))
    assert [(each["owner"], each["holders"]) for each in found["references"]] == [("worker1", ["worker0"])]

    top = telegrad("top", "--once").splitlines()
    assert [line.split()[0] for line in top[:3]] == ["WORKER", "worker0", "worker1"]
    assert json.loads(telegrad("top", "--once", "--json"))["workers"][1]["pool_busy"] == 1

    until(lambda: len(telegrad("logs").splitlines()) >= 5)
    logs = telegrad("logs")
    assert "worker0 | one\\x07\n" in logs and "worker1 | one\\x07\n" in logs and "\x1b" not in logs
    assert telegrad("logs", "worker0", "-n", "2") == "worker0 | three\nworker0 | ready\n"
    assert list(json.loads(telegrad("logs", "--json", "worker0"))["logs"]) == ["worker0"]

    assert "worker0: ended by SIGTERM" in telegrad("kill", "worker0", "--grace", "60")
    assert "worker0" in ended(process, 128 + 15)[1]
    until(lambda: "no job of yours" in telegrad("ps"))


STUBBORN_ONE = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(); sys.stdout.flush(); signal.pause()"
)


@pytest.mark.processes
def test_a_worker_that_ignores_sigterm_or_is_stopped_is_ended(record):
    stubborn = subprocess.Popen([sys.executable, "-c", STUBBORN_ONE], stdout=subprocess.PIPE)
    usual = subprocess.Popen(["sleep", "600"])
    with stubborn, usual:
        stubborn.stdout.read(1)
        usual.send_signal(19)  # SIGSTOP
        for name, process in (("stubborn", stubborn), ("usual", usual)):
            record(name, process_id=process.pid, process_start=process_status(process.pid).start)
        ends = json.loads(telegrad("kill", "usual", "--grace", "60", "--json"))["workers"]
        ends |= json.loads(telegrad("kill", "stubborn", "--grace", "0.1", "--json"))["workers"]
    assert ends == {"stubborn": "killed by SIGKILL", "usual": "ended by SIGTERM"}


def test_a_job_of_another_folder_is_ended_only_by_its_id(record):
    record("w", folder="/elsewhere")
    assert "choose one with --job" in telegrad("kill", code=2)
    assert "no worker 'x'" in telegrad("kill", "x", "--job", "ab12", code=2)


def test_a_log_that_is_missing_or_no_file_is_told(record, here):
    os.mkfifo(here / "pipe")
    record("a", log=str(here / "none"))
    record("b", log=str(here / "pipe"))
    record("c")
    assert telegrad("logs", code=1) == "no log is known of a, b, c: only telegrad run keeps logs\n"


def test_the_last_lines_of_a_log(tmp_path):
    text = b"".join(b"%d %s\n" % (number, b"x" * 1000) for number in range(1000))
    for end in (b"", b"partial"):
        (tmp_path / "log").write_bytes(text + end)
        for count in (0, 1, 2, 300, 999, 1000, 1001, 5000):
            log = _Log(tmp_path / "log")
            log.skip_to_last(count)
            data = b"".join(iter(log.read, b""))
            log.close()
            assert data == b"".join((text + end).splitlines(keepends=True)[-count:] if count else [])


def test_a_log_that_begins_again_is_followed(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    log = _Log(path)
    assert (log.read(), log.read()) == (b"one\n", b"")
    with path.open("ab") as file:
        file.write(b"two\n")
    path.rename(tmp_path / "log.1")
    assert (log.read(), log.read()) == (b"two\n", b"")
    path.write_bytes(b"three\n")
    assert (log.read(), log.read()) == (b"three\n", b"")
    log.close()


LATE = """
import os, time
from telegrad import rpc

def late():
    while not os.path.exists("go"):
        time.sleep(0.01)
    rpc._barrier()

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    called = rpc.rpc_async("worker1", late, timeout=0)
    rpc._barrier()
    called.wait()
rpc.shutdown()
"""


@pytest.mark.processes
def test_a_thread_that_is_still_to_call_the_barrier_while_the_main_thread_shuts_down_is_no_deadlock(here, job, until):
    process = job(LATE, "-n", "2")

    def explained():
        text = telegrad("why") if "worker1" in telegrad("ps") else ""
        return text if " late at " in text and "_barrier" in text else ""

    text = until(explained)
    assert "deadlock" not in text and "worker0" in text
    (here / "go").touch()
    assert process.wait(60) == 0


HOLDS = """
import time
from telegrad import rpc

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    kept = rpc.remote("worker1", bytearray, args=(100_000,))  # made here
    kept.to_here()
    print("made", flush=True)
time.sleep(600)
"""


@pytest.mark.processes
@pytest.mark.parametrize("recorded", [True, False])
def test_memory_tells_the_line_that_made_a_reference(here, job, monkeypatch, recorded):
    monkeypatch.setenv("TELEGRAD_RREF_PLACES", "1" if recorded else "0")
    process = job(HOLDS, "-n", "2")
    read_until(process, 1, "made")
    text = telegrad("memory", "--where")
    line = HOLDS[: HOLDS.index("# made here")].count("\n") + 2
    assert (f"<module> at {here}/script.py:{line}" in text) == recorded and "MADE AT" in text
    assert ("TELEGRAD_RREF_PLACES=1" in text) != recorded
    assert "MADE AT" not in telegrad("memory")
    (reference,) = json.loads(telegrad("memory", "--json"))["references"]
    assert reference["owner"] == "worker1" and bool(reference["where"]) == recorded
