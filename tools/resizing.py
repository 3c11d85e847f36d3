"""``python -m telegrad.tools.resizing``: how long a training pauses when its workers change, 4, 3, 6, 2, with no restart.

Seven processes join a group. Four train; one of them is killed, three come, four leave. A pause is the time between two steps
that count around a change, at a worker that stays, less that of its usual step. Judge it on an idle machine.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import nn, optim
from ..agents import init_rpc
from ..collective import ElasticTraining
from ..core import Tensor, from_numpy, manual_seed
from ..data import ElasticSampler
from ..rpc import GrpcRpcBackendOptions, shutdown

INPUTS, SAMPLES, BATCH, STEPS = 256, 96, 24, 60
CHANGES = (10, 25, 40)  # steps after which workers are killed, come and leave
BYTES_OF_PARAMETER = 3 * 8  # value and Adam's two means, float64
LIMIT_SECONDS = 300.0


class CountedStep(NamedTuple):
    """Step that counts, as a worker tells it.

    Attributes:
        number: of the step.
        members: how many took it.
        loss: of the batch.
        at: monotonic seconds of its end.
        cpu: seconds of processor time of the worker so far.
        repeated: how often it was taken before, and did not count.
    """

    number: int
    members: int
    loss: float
    at: float
    cpu: float
    repeated: int


class Pause(NamedTuple):
    """Pause of a worker at a change."""

    before: int
    after: int
    seconds: float
    cpu: float


def pauses(steps: Sequence[CountedStep]) -> list[Pause]:
    """Return the pauses of a worker that has taken these steps."""
    pairs = list(itertools.pairwise(steps))
    usual = statistics.median(other.at - one.at for one, other in pairs)
    usual_cpu = statistics.median(other.cpu - one.cpu for one, other in pairs)
    return [
        Pause(one.members, other.members, other.at - one.at - usual, other.cpu - one.cpu - usual_cpu)
        for one, other in pairs
        if one.members != other.members
    ]


class Problem:
    """Network of a given size, and random samples on which it is trained.

    Args:
        megabytes: of parameters and the optimizer's state.
        seed: of the weights.
    """

    def __init__(self, megabytes: float, seed: int) -> None:
        random = np.random.default_rng(7)
        self.inputs = random.normal(size=(SAMPLES, INPUTS))
        self.targets = np.sin(self.inputs).sum(1, keepdims=True)
        width = max(1, round(megabytes * 1e6 / BYTES_OF_PARAMETER / (INPUTS + 2)))
        manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(INPUTS, width), nn.Tanh(), nn.Linear(width, 1)).double()
        self.optimizer = optim.Adam(self.model.parameters(), lr=1e-4)
        self.sampler = ElasticSampler(self.inputs, BATCH)

    def loss(self, indices: Sequence[int]) -> Tensor:
        """Return the loss of some samples."""
        chosen = list(indices)
        return nn.functional.mse_loss(self.model(from_numpy(self.inputs[chosen])), from_numpy(self.targets[chosen]))

    def alone(self) -> list[float]:
        """Return the losses of a training by one worker."""
        losses = []
        for _ in range(STEPS):
            self.optimizer.zero_grad()
            loss = self.loss(self.sampler.batch())
            loss.backward()
            self.optimizer.step()
            self.sampler.advance()
            losses.append(float(loss.item()))
        return losses


def work(address: str, rank: int, megabytes: float) -> None:
    """Train as one worker: from the first line of input on, until its input ends or all steps are done."""
    options = GrpcRpcBackendOptions(init_method=address)
    init_rpc(f"worker{rank}", rank=rank, world_size=0, rpc_backend_options=options)
    problem = Problem(megabytes, seed=rank // 4)  # those that come have other weights
    training = ElasticTraining(problem.model, problem.optimizer, problem.sampler, min_workers=2, timeout=LIMIT_SECONDS)
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=_leave_at_the_end_of_input, args=(training,), daemon=True).start()
    repeated = 0
    for indices in training.steps(STEPS):
        number, members = training.completed, training.size
        if training.step(problem.loss(indices)):
            print(number, members, repr(training.loss), time.monotonic(), time.process_time(), repeated, flush=True)
            repeated = 0
        else:
            repeated += 1
    shutdown()


def _leave_at_the_end_of_input(training: ElasticTraining) -> None:
    sys.stdin.read()
    training.leave()


class WorkerProcess:
    """Worker in a process of its own, and what it tells."""

    def __init__(self, address: str, rank: int, megabytes: float) -> None:
        command = [sys.executable, "-m", "telegrad.tools.resizing", "--worker", address, str(rank), str(megabytes)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.steps: list[CountedStep] = []
        self._news = threading.Condition()
        self._ready = self._ended = False
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def begin(self) -> None:
        """Start its training, when it is in the group."""
        self._wait(lambda: self._ready)
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait_until(self, step: int, members: int | None = None) -> None:
        """Wait until a step of this number or a later one counts, and was taken by so many."""
        self._wait(lambda: any(each.number >= step and members in (None, each.members) for each in self.steps[-1:]))

    def leave(self) -> None:
        """Send the request to leave."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end(self) -> None:
        """Wait for its end."""
        self.process.wait(LIMIT_SECONDS)
        self._thread.join()

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._news:
            self._news.wait_for(lambda: condition() or self._ended, LIMIT_SECONDS)
            if not condition():
                raise RuntimeError(f"a worker has ended, or took more than {LIMIT_SECONDS:g} s")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self._ready = True
                if line[0].isdigit():
                    number, members, loss, at, cpu, repeated = map(float, line.split())
                    self.steps.append(CountedStep(int(number), int(members), loss, at, cpu, int(repeated)))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


@contextmanager
def started(megabytes: float) -> Iterator[list[WorkerProcess]]:
    """Start seven workers, which end with the block."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        workers = []
        for rank in range(7):
            worker = WorkerProcess(f"file://{Path(folder) / 'group'}", rank, megabytes)
            stack.callback(worker.end)
            stack.callback(worker.process.kill)
            workers.append(worker)
        yield workers


def resize(megabytes: float) -> list[WorkerProcess]:
    """Return workers 1 and 2, which stay, of a training that had 4, 3, 6 and 2."""
    with started(megabytes) as workers:
        first = workers[1]
        for each in workers[:4]:
            each.begin()
        first.wait_until(CHANGES[0], 4)
        workers[0].process.kill()
        first.wait_until(CHANGES[1], 3)
        for each in workers[4:]:
            each.begin()
        first.wait_until(CHANGES[2], 6)
        for each in workers[3:]:
            each.leave()
        for each in workers[1:3]:
            each.end()
        return workers[1:3]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0 if the aims are reached."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.resizing", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100.0, metavar="N", help="size of the state (%(default)s)")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        address, rank, megabytes = options.worker
        work(address, int(rank), float(megabytes))
        return 0
    expected = Problem(options.megabytes, 0).alone()
    return report(resize(options.megabytes), expected, options.megabytes)


def report(workers: Sequence[WorkerProcess], expected: Sequence[float], megabytes: float) -> int:
    """Print pauses and losses; return 0 if the aims are reached."""
    load = os.getloadavg()[0]
    print(f"{megabytes:g} MB of state; load {load:.1f}")
    found = [each for worker in workers for each in pauses(worker.steps)]
    for each in found:
        print(f"{each.before} to {each.after} workers: {each.seconds:.3f} s, {each.cpu:.3f} s of processor time")
    worst = max(abs(step.loss / expected[step.number] - 1) for worker in workers for step in worker.steps)
    repeated = max(sum(step.repeated for step in worker.steps) for worker in workers)
    longest = max(each.seconds for each in found)
    complete = all([step.number for step in worker.steps] == list(range(STEPS)) for worker in workers)
    good = complete and longest < 1 and worst <= 1e-9 and repeated <= 1
    print(
        f"longest pause {longest:.3f} s; steps repeated {repeated}; losses differ by {worst:.1e} of themselves; "
        f"{'good' if good else 'not as it should be'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
