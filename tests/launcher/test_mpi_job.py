"""Output of ``mpiexec``, taken apart: workers' lines and logs, their reports, and the cause of a failure."""

import io
import json
import os
import signal

import pytest
from telegrad.launcher.clusters.mpi_job import MpiJob
from telegrad.launcher.clusters.mpi_reports import REPORT_MARK, LineReporter

NAMES = ("ps", "tr0", "tr1")
DIED = b"""= BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 102 RUNNING AT host
=   EXIT CODE: 9
"""


@pytest.fixture
def shown():
    return io.StringIO()


@pytest.fixture
def job(tmp_path, shown):
    job = MpiJob(NAMES, tmp_path, print, shown)
    for rank in range(3):
        said(job, rank, kind="began", pid=100 + rank)
        said(job, rank, kind="joined", name=NAMES[rank])
    with job._resources:
        yield job


def said(job, rank, text="", **report):
    """Let mpiexec write a report of a rank, behind text that the rank had begun to write."""
    job.take(f"[{rank}] {text}{REPORT_MARK}{json.dumps({'rank': rank, **report})}\n".encode(), 1.0)


def test_lines_go_to_the_terminal_and_to_logs_without_reports(job, tmp_path, shown):
    job.take(b"[0] one\n[2] tw", 1.0)
    job.take(b"o\n[0] \nof mpiexec\n[7] nobody\n", 1.0)
    said(job, 1, "half a line", kind="ended", code=0)
    assert shown.getvalue().splitlines() == ["ps  | one", "tr1 | two", "ps  | ", "tr0 | half a line"]
    assert (tmp_path / "ps.log").read_text() == "one\n\n" and (tmp_path / "tr1.log").read_text() == "two\n"
    assert (tmp_path / "mpiexec.log").read_text() == "of mpiexec\n[7] nobody\n"


def test_all_went_well(job):
    for rank in range(3):
        said(job, rank, kind="left", how="agreed")
        said(job, rank, kind="ended", code=0)
    result = job._result(0, [])
    assert (result.exit_code, result.cause, [worker.code for worker in result.workers]) == (0, None, [0, 0, 0])


def test_the_cause_is_the_worker_that_the_others_lost(job):
    said(job, 0, kind="failed", traceback="lost", lost=["tr1"])
    said(job, 2, kind="failed", traceback="ValueError: no such luck", lost=[])
    said(job, 0, kind="ended", code=1)
    result = job._result(1, [])
    assert (
        result.cause.name == "tr1" and result.cause.code == 1 and result.cause.traceback == "ValueError: no such luck"
    )
    ps, tr0, _ = result.workers
    assert ps.lost == ("tr1",) and not ps.ended_by_launcher and tr0.ended_by_launcher


def test_a_worker_that_was_killed_is_found_by_what_mpiexec_says(job):
    job.take(DIED, 2.0)
    result = job._result(9, [])
    assert result.cause.name == "tr1" and result.cause.code == -signal.SIGKILL and not result.cause.ended_by_launcher
    assert [worker.ended_by_launcher for worker in result.workers] == [True, True, False]


def test_an_exit_code_of_its_own(job):
    said(job, 1, kind="ended", code=5)
    assert job._result(5, []).cause.code == 5


@pytest.mark.parametrize(("code", "told"), [(None, 0), (3, 3), (0, 0), ("text", 1)])
def test_the_reports_of_a_worker_are_marked_lines(code, told, capfd):
    reporter = LineReporter(4)
    reporter.failed(ValueError("x" * 10_000))
    reporter.ended(code)
    os.close(reporter._descriptor)
    began, failed, ended = (
        json.loads(line.removeprefix(REPORT_MARK)) for line in capfd.readouterr().err.split("\n")[:3]
    )
    assert began["kind"] == "began" and failed["kind"] == "failed" and len(failed["traceback"]) <= 4096
    assert ended == {"rank": 4, "kind": "ended", "code": told}
