"""Exactly-once calls of real processes, of which any is killed by SIGKILL at any moment and started again."""

import os
import queue
import random
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from telegrad import rpc
from telegrad.launcher.environment import reserve_port
from telegrad.testing import replayable, seeds

PROGRAM = Path(__file__).parents[1] / "programs" / "exactly_once_job.py"
UPDATES = 60


class Worker:
    """Process of one worker, which a test kills and starts again; its lines go to the test's queue."""

    def __init__(self, job, name, rank):
        self.job, self.name, self.rank = job, name, rank
        self.deaths = 0
        self.start()

    def start(self):
        command = [
            sys.executable,
            str(PROGRAM),
            self.job.address,
            str(self.job.folder),
            self.name,
            str(self.rank),
            str(UPDATES),
        ]
        environment = {**os.environ, "XDG_STATE_HOME": str(self.job.folder / "state")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )
        self.reader = threading.Thread(target=self.read, args=(self.process,))
        self.reader.start()

    def read(self, process):
        for line in process.stdout:
            self.job.lines.put((self, process, line.strip()))
        self.job.lines.put((self, process, "ended"))

    def kill(self):
        self.process.kill()
        self.end()
        self.deaths += 1

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.reader.join()
        self.process.stdout.close()


class Job:
    """Workers by name, in a group whose rank 0 is the test itself."""

    def __init__(self, folder, names):
        self.folder, self.lines = folder, queue.Queue()
        with closing(reserve_port()) as reserved:
            self.address = f"tcp://127.0.0.1:{reserved.getsockname()[1]}"
        self.names = names

    def __enter__(self):
        options = rpc.GrpcRpcBackendOptions(init_method=self.address)
        rpc.init_rpc("test", rank=0, world_size=0, rpc_backend_options=options)
        self.workers = {name: Worker(self, name, rank) for rank, name in enumerate(self.names, 1)}
        return self

    def __exit__(self, *exception):
        for worker in self.workers.values():
            if exception[0] is not None:
                worker.process.kill()
        for worker in self.workers.values():
            worker.end()
        rpc.shutdown(graceful=False)

    def run(self, rng, deaths):
        """Kill a worker after some of its lines, so many times in all, until all trainers are done."""
        done, left = set(), rng.randint(1, 30)
        trainers = {worker for name, worker in self.workers.items() if name not in ("server", "relay")}
        while done != trainers:
            worker, process, line = self.lines.get(timeout=120)
            if process is not worker.process:
                continue  # of one that was killed
            assert line != "ended", f"{worker.name} has ended by itself"
            done |= {worker} if line == "done" else set()
            left -= 1
            if left <= 0 and deaths:
                victim = rng.choice([each for each in self.workers.values() if each not in done])
                victim.kill()
                victim.start()
                deaths, left = deaths - 1, rng.randint(1, 60)

    def logs(self, *names):
        """Return the logs of workers."""
        return [rpc.rpc_sync(name, eval, ("__import__('__main__').read()",)) for name in names]


def check(log, trainers):
    """Raise unless a log has each update of each trainer once, in its order."""
    updates, total = log
    assert Counter(map(tuple, updates)) == Counter((name, number) for name in trainers for number in range(UPDATES))
    for name in trainers:
        assert [number for trainer, number in updates if trainer == name] == list(range(UPDATES))
    assert total.tolist() == [len(trainers) * UPDATES * (UPDATES + 1) / 2] * 3


@pytest.fixture
def alone(monkeypatch, tmp_path):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TELEGRAD_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("seed", seeds(1))
def test_each_update_is_applied_once_though_server_and_trainers_are_killed(tmp_path, alone, seed):
    with replayable(seed), Job(tmp_path, ["server", "trainer0", "trainer1"]) as job:
        job.run(random.Random(seed), deaths=4)
        (log,) = job.logs("server")
    check(log, ["trainer0", "trainer1"])


@pytest.mark.parametrize("seed", seeds(1))
def test_calls_of_calls_are_applied_once_though_the_worker_between_is_killed(tmp_path, alone, seed):
    with replayable(seed), Job(tmp_path, ["server", "relay", "far0", "far1"]) as job:
        job.run(random.Random(seed), deaths=4)
        server, relay = job.logs("server", "relay")
    check(server, ["far0", "far1"])
    check(relay, ["far0", "far1"])
