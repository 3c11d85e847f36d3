"""Reports of a worker to its launcher, and who may write them."""

import os
import time
from contextlib import closing

import pytest
from telegrad.base import worker_reports
from telegrad.base.errors import WorkerLostError
from telegrad.base.last_events import launched_last_events
from telegrad.base.worker_reports import Reporter, lost_workers, reporter
from telegrad.launcher.events import Failed, Joined, Left, Lost
from telegrad.launcher.worker_files import EventsFile, ReportFile


@pytest.fixture
def reports():
    file = ReportFile()
    yield file
    file.close()


@pytest.fixture
def worker(reports, monkeypatch):
    monkeypatch.setattr(worker_reports.atexit, "register", lambda action: None)
    return Reporter(reports.descriptor, 3)


def test_reports_arrive_once_and_in_order(reports, worker):
    worker.joined("ps")
    worker.lost("trainer", "it is gone")
    assert list(reports.read()) == [Joined(3, "ps"), Lost(3, "trainer", "it is gone")]
    worker.left(agreed=False)
    worker.failed(ValueError("first"))
    worker.failed(ValueError("second"))
    assert list(reports.read()) == [Left(3, shut_down=True, agreed=False), Failed(3, error="ValueError: first")]
    assert reports.tracebacks == {3: "ValueError: first\n"} and list(reports.read()) == []


def test_a_report_of_any_length_is_taken_in_without_a_reader(reports, worker):
    worker.failed(ValueError("x" * 3_000_000))
    worker.left(agreed=True)
    assert list(reports.read()) == [
        Failed(3, error=f"ValueError: {'x' * 3_000_000}"),
        Left(3, shut_down=True, agreed=True),
    ]
    assert len(reports.tracebacks[3]) > 3_000_000


def test_half_a_line_is_left_for_later(reports, worker):
    os.write(reports.descriptor, b'{"rank": 1, "kind": "joi')
    assert list(reports.read()) == []
    os.write(reports.descriptor, b'ned", "name": "w1", "together": true}\n')
    assert list(reports.read()) == [Joined(1, "w1", together=True)]


def test_a_forked_child_reports_nothing(reports, worker):
    worker._process_id += 1
    worker.joined("ps")
    assert list(reports.read()) == []


def raised(error, cause=None, context=None):
    error.__cause__, error.__context__ = cause, context
    return error


LOST = WorkerLostError("gone", "w1")


@pytest.mark.parametrize(
    "error, lost",
    [
        (ValueError(), []),
        (LOST, ["w1"]),
        (raised(RuntimeError(), cause=LOST), ["w1"]),
        (raised(RuntimeError(), context=raised(KeyError(), context=LOST)), ["w1"]),
        (raised(WorkerLostError("", "w2"), cause=LOST), ["w2", "w1"]),
    ],
)
def test_what_a_lost_worker_caused_names_it(reports, worker, error, lost):
    assert lost_workers(error) == lost
    worker.failed(error)
    (report,) = reports.read()
    assert (report.rank, report.lost) == (3, tuple(lost)) and type(error).__name__ in report.error


def test_errors_that_go_in_a_circle_end():
    first, second = ValueError(), KeyError()
    first.__context__, second.__context__ = second, first
    assert lost_workers(first) == []


def test_an_error_whose_text_raises_is_reported_all_the_same(reports, worker):
    class Rude(Exception):
        def __str__(self):
            raise SystemExit(3)

    worker.failed(Rude())
    (report,) = reports.read()
    assert "Rude" in report.error and "Rude" in reports.tracebacks[3]


def test_only_the_launchers_own_file_is_written_to(reports, monkeypatch, tmp_path):
    """A process that a worker started has the variable, and another file at that number, or none."""
    monkeypatch.setattr(worker_reports, "_reporter", None)
    with open(tmp_path / "other", "w") as other:
        inherited = reports.variable(0)[worker_reports.VARIABLE]
        monkeypatch.setenv(
            worker_reports.VARIABLE, inherited.replace(f"{reports.descriptor}:", f"{other.fileno()}:", 1)
        )
        assert reporter() is None
    monkeypatch.setenv(worker_reports.VARIABLE, inherited.replace(f"{reports.descriptor}:", "987654:", 1))
    assert reporter() is None
    monkeypatch.setenv(worker_reports.VARIABLE, inherited)
    assert reporter() is not None


def test_a_worker_finds_its_part_of_the_launchers_memory(monkeypatch):
    with closing(EventsFile(2)) as file:
        monkeypatch.setenv(*file.variable(1).popitem())
        launched_last_events().add("here")
        now = time.monotonic()
        assert file.told(0, now) == ()
        (told,) = file.told(1, now)
        assert told.endswith(" s before: here")
        monkeypatch.setenv(*file.variable(2).popitem())  # past its end
        assert launched_last_events() is None
