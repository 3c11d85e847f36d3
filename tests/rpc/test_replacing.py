"""Jobs of fixed size whose lost workers are replaced: real processes, which are killed at any time and started again."""

import contextlib
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "programs" / "place.py"
pytestmark = pytest.mark.processes


class Worker:
    """Worker in a process of its own."""

    def __init__(self, address, rank, size, *more):
        self.rank = rank
        command = [sys.executable, str(PROGRAM), address, str(rank), str(size), *map(str, more)]
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, **streams)
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.split())
        self._lines.put(None)

    def says(self):
        try:
            return self._lines.get(timeout=60)
        except queue.Empty:
            self.process.kill()
            raise AssertionError(f"rank {self.rank} says nothing: {self.process.stderr.read()}") from None

    def tell(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def ask(self, *words):
        self.tell(*words)
        return self.says()

    def kill(self):
        self.process.kill()
        self.process.wait(60)

    def end_of_input(self):
        self.process.stdin.close()
        assert self.says() == ["leaves"]

    def left(self):
        assert self.says() == ["left"] and self.process.wait(60) == 0


class Job:
    """Workers of one job."""

    def __init__(self, address, stack):
        self.address = address
        self.workers = []
        self._stack = stack

    def start(self, rank, size, *more):
        worker = Worker(self.address, rank, size, *more)
        self._stack.enter_context(worker.process)
        self._stack.callback(worker.process.kill)
        self.workers[rank : rank + 1] = [worker]
        return worker

    def meet(self, size, *more):
        for rank in range(size):
            self.start(rank, size, *more)
        for worker in self.workers:
            assert worker.says() == ["met", *self.names(size)]
        return self.workers

    def names(self, size):
        return [f"w{rank}" for rank in range(size)]

    def all_reach_all(self):
        everyone = [str(worker.process.pid) for worker in self.workers]
        for worker in self.workers:
            assert worker.ask("ask", *self.names(len(self.workers))) == everyone

    def leave(self):
        for worker in self.workers:
            worker.end_of_input()
        for worker in self.workers:
            worker.left()


@pytest.fixture
def job(outside_a_job, tmp_path):
    with contextlib.ExitStack() as stack:
        yield Job(f"file://{tmp_path}/job", stack)


@pytest.mark.parametrize(("rank", "times"), [(0, 1), (1, 2), (2, 1)])
def test_any_worker_that_is_killed_takes_its_place_again(job, rank, times):
    job.meet(3)
    job.all_reach_all()
    for _ in range(times):
        job.workers[rank].kill()
        asked = job.workers[(rank + 1) % 3]
        asked.tell("ask", f"w{rank}")
        again = job.start(rank, 3)
        assert again.says()[0] == "met"
        assert asked.says() == [str(again.process.pid)]
        job.all_reach_all()
    for worker in job.workers:
        worker.tell("barrier")
    assert [worker.says() for worker in job.workers] == [["passed"]] * 3
    job.leave()


@pytest.mark.parametrize("rank", [0, 1])
def test_so_it_does_when_it_is_killed_before_all_have_met(job, rank):
    first = job.start(rank, 2)
    other = 1 - rank
    wait_for_line(job, 1)
    first.kill()
    again = job.start(rank, 2)
    wait_for_line(job, 3)  # it writes that the first one has left, and then that it joins
    job.start(other, 2)
    job.workers = sorted({id(w): w for w in (again, *job.workers)}.values(), key=lambda worker: worker.rank)[-2:]
    for worker in job.workers:
        assert worker.says() == ["met", "w0", "w1"]
    job.all_reach_all()
    job.leave()


def wait_for_line(job, count):
    path = Path(job.address.removeprefix("file://"))
    while not path.exists() or len(path.read_text().splitlines()) < count:
        pass


def test_shutdown_waits_for_a_worker_that_is_started_again(job):
    workers = job.meet(3)
    workers[1].kill()
    for worker in (workers[0], workers[2]):
        worker.end_of_input()
    again = job.start(1, 3)
    assert again.says()[0] == "met"
    assert again.ask("ask", "w0", "w2") == [str(workers[rank].process.pid) for rank in (0, 2)]
    again.end_of_input()
    for worker in job.workers:
        worker.left()


def test_but_no_longer_than_it_may_be_replaced(job):
    workers = job.meet(2, 0.5)
    workers[1].kill()
    workers[0].end_of_input()
    workers[0].left()


def test_all_workers_are_killed_and_the_job_begins_anew(job):
    for worker in job.meet(3):
        worker.kill()
    job.workers = []
    for rank in range(3):
        job.start(rank, 3)
    for (
        worker
    ) in job.workers:  # the last one killed may have written that others are lost: their places are then taken again
        assert worker.says()[0] == "met"
    job.all_reach_all()
    job.leave()


def test_the_last_one_has_written_that_the_others_are_lost(job):
    workers = job.meet(3)
    for rank in (0, 1):
        workers[rank].kill()
    wait_for_line(job, 5)  # three have joined, and two have left
    workers[2].kill()
    job.workers = []
    for rank in range(3):
        job.start(rank, 3)
    for worker in job.workers:
        assert worker.says()[0] == "met"
    job.all_reach_all()
    job.leave()


def test_most_are_killed_at_once(job):
    workers = job.meet(3)
    for rank in (0, 2):
        workers[rank].kill()
    first = job.start(2, 3)
    assert first.says() == ["met", "w1", "w2"]
    first.tell("ask", "w0")  # its name is known, and it is waited for
    assert job.start(0, 3).says()[0] == "met"
    assert first.says() == [str(job.workers[0].process.pid)]
    job.all_reach_all()
    job.leave()


def test_a_suspended_worker_is_expelled_before_another_has_its_place(job):
    workers = job.meet(3)
    job.all_reach_all()
    old = workers[1]
    old.process.send_signal(signal.SIGSTOP)
    again = job.start(1, 3)
    assert again.says()[0] == "met"
    old.process.send_signal(signal.SIGCONT)
    old.tell("ask", "w0")
    assert old.process.wait(60) != 0 and "expelled" in old.process.stderr.read()
    job.all_reach_all()
    job.leave()


def test_the_place_of_a_worker_that_lives_is_refused(job):
    job.meet(2)
    second = Worker(job.address, 1, 2)
    assert second.process.wait(60) != 0
    assert "has that name or rank 1, and has not left" in second.process.communicate()[1]
    job.all_reach_all()
    job.leave()


def test_a_worker_that_fails_may_come_back(job):
    workers = job.meet(2)
    workers[1].tell("fail")
    assert workers[1].process.wait(60) == 1
    workers[0].end_of_input()
    assert job.start(1, 2).says()[0] == "met"
    job.workers[1].end_of_input()
    for worker in job.workers:
        worker.left()


def test_a_process_group_of_all_can_be_made_again(job):
    workers = job.meet(3)
    for again in (False, True):
        for worker in workers:
            worker.tell("group")
        assert [worker.says() for worker in workers] == [["sum", "3.0"]] * 3
        if again:
            break
        workers[0].kill()
        for worker in workers[1:]:
            assert worker.ask("reduce")[0] == "WorkerLostError"
        job.start(0, 3)
        assert workers[0].says()[0] == "met"
    job.leave()
