"""A job that is looked at again and again, from before its workers have come together until it has ended."""

import pytest
from telegrad.launcher.watching import watched_job
from telegrad.launcher.watching.jobs import NoJobError, choose_job
from telegrad.launcher.watching.watched_job import WatchedJob
from telegrad.rpc.observing import Observation


@pytest.fixture
def observe(monkeypatch):
    def names(job, timeout):
        return [Observation(each.record.worker, 0, 0) for each in job.workers]

    monkeypatch.setattr(watched_job, "observe_job", names)


def test_a_job_is_followed_to_the_id_that_it_gets_when_it_has_come_together(record, observe):
    for name in "ab":
        record(name, job="early", joined=False)
    watched = WatchedJob(choose_job(), 1.0)
    assert [each.worker for each in watched.look()] == ["a", "b"]
    record("a", job="late")  # a moment before the other
    assert watched.look() and watched.job.key == "late"
    record("b", job="late")
    assert [each.worker for each in watched.look()] == ["a", "b"] and not watched.ended


def test_the_last_look_of_a_job_that_has_ended_stays(record, observe, monkeypatch):
    record("a")
    watched = WatchedJob(choose_job(), 1.0)
    seen = watched.look()
    monkeypatch.setattr(watched_job, "find_jobs", list)
    monkeypatch.setattr("telegrad.launcher.watching.jobs.find_jobs", list)
    with pytest.raises(NoJobError):
        watched.look()
    assert watched.ended and watched.seen == seen
