"""Jobs of ``telegrad run`` for the tests of this folder."""

import signal
import subprocess
import threading
from contextlib import contextmanager, suppress

import psutil
import pytest
from helpers.browser import chromium, leave
from helpers.launched import LAUNCHER, LIMIT
from helpers.programs import ending_within
from telegrad.base.job_folder import new_records_folder
from telegrad.base.job_records import JobRecord, own_facts, write_record


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Return a function that starts `telegrad run` in an empty folder: job(source, *options, args=[...])."""
    for name in ("FORCE_COLOR", "TELEGRAD_JOB", "PYTHONFAULTHANDLER", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    started = []

    def start(source, *options, args=(), name="script.py", overwrite=True, script_named=True, **popen):
        if overwrite:
            (tmp_path / name).write_text("import os, signal, subprocess, sys\n" + source)
        command = [*LAUNCHER, "run", *options, *([name] if script_named else []), *args]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, cwd=tmp_path, text=True, start_new_session=True, **pipes, **popen)
        started.append(process)
        return process

    with watchdog(started):
        yield start
    for process in started:
        with process:
            if process.poll() is None:
                process.kill()  # its guardian ends the rest


@pytest.fixture(scope="module")
def driver():
    """Return Chromium, which a module's tests share."""
    with chromium() as found:
        yield found


@pytest.fixture
def browser(driver):
    """Return the driver, for one test."""
    yield driver
    leave(driver)


@contextmanager
def watchdog(started):
    """Abort jobs that hang; the fault handler prints their processes' stacks, which the failing test then shows."""

    def end():
        for launcher in started:
            if launcher.poll() is None:
                for process in [*psutil.Process(launcher.pid).children(recursive=True), launcher]:
                    with suppress(psutil.NoSuchProcess):
                        process.send_signal(signal.SIGABRT)

    timer = threading.Timer(LIMIT, end)
    timer.start()
    try:
        with ending_within(LIMIT + 30):
            yield
    finally:
        timer.cancel()
        timer.join()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one, with no job of others."""
    monkeypatch.setenv("TELEGRAD_JOBS_DIR", str(tmp_path / "jobs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def record(here):
    """``record(worker)`` writes the record of a worker, which this process stands for; other values can be given."""
    with new_records_folder() as folder:

        def write(worker, **changes):
            facts = {"stem": f"9-{worker.encode().hex()}", "rank": 0, "world_size": 2, "job": "ab12", "program": "p.py"}
            facts |= {"log": "", "dump_signal": 0, "began": 1.0, "version": "0.0.7", "worker": worker, "joined": True}
            write_record(folder, made := JobRecord(**own_facts() | facts | changes))
            return made

        yield write
