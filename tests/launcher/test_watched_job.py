"""A job that is looked at again and again, from before its workers have come together until it has ended: which workers a look
asks, when it asks why the job waits, and connections that are kept.
"""

import json
import os
import signal
import socket
import threading
from contextlib import closing
from dataclasses import replace

import pytest
from helpers.launched import read_until
from telegrad.base.job_folder import JobFolder, job_folders
from telegrad.launcher.watching import quiet, watched_job
from telegrad.launcher.watching.jobs import NoJobError, choose_job
from telegrad.launcher.watching.watched_job import WatchedJob
from telegrad.rpc.observing import Observation

IDLE = """
from telegrad import rpc

rpc.init_rpc()
print("joined", flush=True)
time.sleep(600) if rpc.get_worker_info().id else rpc.rpc_sync("worker1", time.sleep, args=(600,), timeout=0)
"""


class Clock:
    """Clock that stands until it is moved."""

    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock of watched jobs."""
    clock = Clock()
    monkeypatch.setattr(watched_job, "time", clock)
    monkeypatch.setattr(quiet, "time", clock)
    return clock


class Answers:
    """Worker's answers to commands: one line of ``observation`` each, on as many connections as come."""

    def __init__(self, listener, observation):
        self.listener = listener
        self.observation = observation
        self.requests = []
        self.connections = 0
        self.changed = threading.Condition()

    def serve(self):
        try:
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self.answer, args=(connection,), daemon=True).start()
        except OSError:
            return

    def answer(self, connection):
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                self.requests.append(json.loads(line).get("parts", "all"))
                connection.sendall(b'{"observations": 1}\n' + json.dumps(self.observation).encode() + b"\n")


@pytest.fixture
def answering(record, thread):
    """A job of one worker, which this process stands for, and its ``Answers``."""
    made = record("w", world_size=1)
    with socket.socket(socket.AF_UNIX) as listener, JobFolder(job_folders()[0]) as folder:
        listener.bind(folder.place(f"{made.stem}.sock"))
        listener.listen()
        answers = Answers(listener, {"worker": "w", "number": 0, "rank": 0})
        serving = thread(answers.serve)
        try:
            yield answers
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            serving.join(20)


@pytest.fixture
def used(monkeypatch):
    """``used[0]`` is the processor time of the worker's process."""
    seconds = [5.0]
    monkeypatch.setattr(quiet, "cpu_clock_seconds", lambda process_id: seconds[0])
    return seconds


def test_a_worker_that_does_nothing_is_not_asked_at_each_look(answering, clock, used):
    with closing(WatchedJob(choose_job(), 20.0, ["loops"])) as watched:
        (first,) = watched.look()
        clock.now += 1.0
        (second,) = watched.look()
        assert second == replace(first, cpu_seconds=5.0, memory_bytes=second.memory_bytes) and second.memory_bytes > 0
        assert answering.requests == ["all"]
        used[0] += 0.5
        clock.now += 1.0
        watched.look()
        clock.now += quiet.ANSWER_HOLDS_SECONDS
        watched.look()
        assert answering.requests == ["all", ["loops"], ["loops"]] and answering.connections == 1


def test_why_is_asked_when_a_call_waits_and_not_while_the_job_goes_on(answering, clock, used):
    with closing(WatchedJob(choose_job(), 20.0)) as watched:
        for calls, oldest, asked in ((0, 0.0, "all"), (5, 0.0, []), (9, 3.0, "all"), (9, 9.0, []), (20, 0.0, [])):
            answering.observation |= {"calls_made": calls, "oldest_call_seconds": oldest}
            used[0] += 5.0
            clock.now += watched_job.WHY_SECONDS
            watched.look()
            assert answering.requests.pop() == asked
            answering.requests.clear()
        clock.now += watched_job.OTHERWISE_SECONDS
        watched.look()
        assert answering.requests == [[], "all"]


def test_curves_are_asked_for_now_and_then_and_kept(answering, clock, used):
    answering.observation["logged"] = [{"name": "loss", "count": 1, "step": 0, "last": 2.0, "seconds": 0.0}]
    with closing(WatchedJob(choose_job(), 20.0, ["logged", "loops"])) as watched:
        seen = []
        for _ in range(3):
            used[0] += 5.0
            clock.now += 1.0
            seen += watched.look()
        assert [each.logged[0].last for each in seen] == [2.0] * 3
        assert answering.requests == ["all", ["logged", "loops"], ["loops"]]


def test_a_connection_that_was_closed_is_made_again(answering, clock, used, monkeypatch):
    monkeypatch.setattr(Answers, "answer", _answer_once)
    with closing(WatchedJob(choose_job(), 20.0)) as watched:
        for _ in range(3):
            used[0] += 5.0
            clock.now += 1.0
            assert [each.error for each in watched.look()] == [""]
        assert answering.connections == 3


def _answer_once(self, connection):
    with connection:
        connection.recv(1 << 16)
        connection.sendall(b'{"observations": 1}\n' + json.dumps(self.observation).encode() + b"\n")


@pytest.mark.processes
def test_a_job_is_watched_and_its_stopped_worker_seen(here, job, until):
    process = job("import time" + IDLE, "-n", "2")
    read_until(process, 2, "joined")
    with closing(WatchedJob(choose_job(), 20.0, ["links"])) as watched:
        seen = watched.look()
        assert [each.worker for each in seen] == ["worker0", "worker1"] and not any(each.threads for each in seen)
        until(lambda: [each.totals.get("calls") for each in watched.look()] == [1, 0])
        (whole,) = watched.whole(["worker1"])
        assert whole.threads and whole.worker == "worker1"
        os.kill(whole.process_id, signal.SIGSTOP)
        until(lambda: watched.look()[1].process_state == "stopped")
        os.kill(whole.process_id, signal.SIGKILL)
        until(lambda: _has_ended(watched))


def _has_ended(watched):
    try:
        watched.look()
    except watched_job.NoJobError:
        return True
    return False


@pytest.fixture
def observe(monkeypatch):
    def answer(job, timeout, names=(), *_):
        asked = [each.record.worker for each in job.workers if not names or each.record.worker in names]
        return [Observation(worker, 0, 0) for worker in asked]

    monkeypatch.setattr(watched_job, "observe_job", answer)


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
    monkeypatch.setattr(watched_job, "records_stamp", lambda: (1,))
    monkeypatch.setattr(watched_job, "find_jobs", list)
    monkeypatch.setattr("telegrad.launcher.watching.jobs.find_jobs", list)
    with pytest.raises(NoJobError):
        watched.look()
    assert watched.ended and watched.seen == seen
