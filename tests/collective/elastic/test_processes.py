"""Elastic training by real processes, which are killed, leave and join."""

import contextlib
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "programs" / "elastic.py"
STEPS = 200
SECONDS = 60
pytestmark = pytest.mark.processes


class Process:
    """A worker in a process of its own, and the lines that it has printed."""

    def __init__(self, address, rank, steps, width, pieces, gates, seed):
        command = [
            sys.executable,
            str(PROGRAM),
            address,
            f"worker{rank}",
            *map(str, (rank, steps, width, pieces, gates, seed)),
        ]
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = []
        self.news = threading.Condition()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.split())
                self.news.notify_all()
        with self.news:
            self.lines.append(["closed"])
            self.news.notify_all()

    def until(self, condition):
        """Wait until a printed line fulfils the condition."""
        with self.news:
            found = self.news.wait_for(lambda: any(map(condition, self.lines)) or ["closed"] in self.lines, SECONDS)
            assert found and any(map(condition, self.lines)), self.lines

    def until_step(self, step, members=None):
        """Wait until a step counts, from this number on, taken by so many members."""
        self.until(
            lambda line: (
                line[0] == "step" and int(line[1]) >= step and (members is None or len(line[2].split(",")) == members)
            )
        )

    def begin(self):
        """Let it take part, when it is in the job."""
        self.until(lambda line: line[0] == "ready")
        print(file=self.process.stdin, flush=True)

    def members(self):
        """Return the number of members of the latest step."""
        return next((len(line[2].split(",")) for line in reversed(self.lines) if line[0] == "step"), 0)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)

    def leave(self):
        self.process.stdin.close()

    def finish(self):
        """Wait for the end; return the number of completed steps and the digest of the weights."""
        assert self.process.wait(SECONDS) == 0, self.lines
        self.thread.join()
        (ended,) = [line for line in self.lines if line[0] == "end"]
        return int(ended[1]), ended[2]

    def losses(self):
        return {int(line[1]): float(line[3]) for line in self.lines if line[0] == "step"}

    def sizes(self):
        return [len(line[2].split(",")) for line in self.lines if line[0] == "step"]

    def again(self):
        return sum(line[0] == "again" for line in self.lines)


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Return a function that starts a worker of a rank."""
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TELEGRAD_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with contextlib.ExitStack() as stack:

        def begin(rank, group="group", steps=STEPS, width=16, pieces=0, seed=0):
            made = Process(f"file://{tmp_path}/{group}", rank, steps, width, pieces, tmp_path, seed)
            stack.enter_context(made.process)
            stack.callback(made.thread.join)
            stack.callback(made.process.kill)
            return made

        yield begin


class Gates:
    """Gates of the training: every fifth step waits for its own."""

    def __init__(self, folder):
        self.folder, self.next = folder, 0

    def open(self, worker):
        """Let five more steps happen."""
        (self.folder / str(self.next)).touch()
        worker.until_step(self.next + 4)
        self.next += 5

    def open_until(self, worker, members):
        """Let steps happen until so many members have taken one."""
        while worker.members() != members:
            assert self.next < STEPS - 5, worker.lines
            self.open(worker)

    def open_all(self):
        for step in range(self.next, STEPS, 5):
            (self.folder / str(step)).touch()


@pytest.fixture
def gates(tmp_path):
    return Gates(tmp_path)


def all_begin(*workers):
    for each in workers:
        each.begin()


def reference(start, **options):
    """Losses and weights of a run of two workers."""
    two = [start(rank, group="fixed", **options) for rank in range(2)]
    all_begin(*two)
    ((_, digest), _) = [each.finish() for each in two]
    return two[0].losses(), digest


def close_to(losses, others):
    assert losses and all(abs(loss - others[step]) <= 1e-9 * abs(others[step]) for step, loss in losses.items())


@pytest.mark.parametrize("pieces", [pytest.param(0, marks=pytest.mark.soak), 8])
def test_four_three_six_two_workers_without_a_restart(start, gates, pieces):
    workers = [start(rank, pieces=pieces, seed=rank // 4) for rank in range(7)]
    all_begin(*workers[:4])
    first = workers[1]
    gates.open_until(first, members=4)
    workers[0].kill()
    gates.open_until(first, members=3)
    all_begin(*workers[4:])
    gates.open_until(first, members=6)
    for each in workers[3:]:
        each.leave()
    gates.open_until(first, members=2)
    gates.open_all()
    ends = [each.finish() for each in workers[1:]]
    assert ends[0] == ends[1] and ends[0][0] == STEPS
    losses, digest = reference(start, pieces=pieces)
    assert sorted(first.losses()) == list(range(STEPS))
    for each in workers[1:]:
        close_to(each.losses(), losses)
        assert each.again() <= 1
    assert not pieces or ends[0][1] == digest


@pytest.mark.parametrize("victim", [0, *(pytest.param(each, marks=pytest.mark.soak) for each in (1, 2))])
def test_a_killed_worker_is_replaced_and_the_weights_are_bit_equal(start, gates, victim):
    workers = [start(rank, pieces=6) for rank in range(3)]
    all_begin(*workers)
    other = workers[1 if victim == 0 else 0]
    gates.open_until(other, members=3)
    workers[victim].kill()
    gates.open_until(other, members=2)
    workers[victim] = start(victim, pieces=6, seed=9)
    workers[victim].begin()
    gates.open_until(other, members=3)
    gates.open_all()
    ends = [each.finish() for each in workers]
    assert len(set(ends)) == 1 and ends[0][0] == STEPS
    _, digest = reference(start, pieces=6)
    assert ends[0][1] == digest
    assert all(each.again() <= 1 for each in workers)
