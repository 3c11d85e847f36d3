"""One training under ``telegrad run --restart``, whose workers are killed at chosen moments."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import IO

from .diary import BEGUN, FOLDER_VARIABLE, STEP, DiaryReader, Line
from .trainings import Training

LOOK_SECONDS = 0.002
LIMIT_SECONDS = 60.0
END_SECONDS = 10.0


@dataclass(frozen=True)
class Kill:
    """A worker is killed.

    Attributes:
        rank: which.
        share: when: after this share of all lines of the undisturbed diary, ...
        pause: ... and these seconds.
    """

    rank: int
    share: float
    pause: float


@dataclass
class Outcome:
    """Outcome of a training.

    Attributes:
        code: exit code of ``telegrad run``; ``None`` if it did not end in time.
        lines: its diary.
        kills: what was done: when, and to which worker. Fewer than planned if the training was over.
        seconds: how long it took.
    """

    code: int | None
    lines: list[Line]
    kills: list[tuple[float, int]]
    seconds: float
    pauses: list[float] = field(default_factory=list)


def run_training(training: Training, folder: Path, kills: Sequence[Kill], length: int) -> Outcome:
    """Run a training in an empty folder, and kill its workers as planned.

    Args:
        training: which one.
        folder: for its diary, checkpoints, and the logs of its workers.
        kills: whom to kill, and when.
        length: lines of its diary when it is not disturbed.
    """
    began = time.monotonic()
    reader, done = DiaryReader(folder, training.workers), []
    with (folder / "output").open("wb") as output, _started(training, folder, output) as process:
        for kill in sorted(kills, key=lambda each: each.share):
            if not _comes(process, reader, kill.share * length):
                break
            time.sleep(kill.pause)
            reader.read()
            if (pid := _process_of(kill.rank, reader.lines)) and _kill(pid):
                done.append((time.monotonic(), kill.rank))
        code = _end(process, began + LIMIT_SECONDS)
    reader.read()
    lines = reader.lines
    return Outcome(code, lines, done, time.monotonic() - began, [pause_after(at, rank, lines) for at, rank in done])


@contextlib.contextmanager
def _started(training: Training, folder: Path, output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    module = f"{__package__}.programs.{training.name}"
    command = [
        sys.executable,
        "-m",
        "telegrad.launcher",
        "run",
        "-n",
        str(training.workers),
        "--restart",
        training.restart,
    ]
    command += ["--max-restarts", "10", "--within", "60", "--log-dir", str(folder / "logs"), "--plain"]
    command += ["-m", module, str(folder / "checkpoints"), str(training.steps)]
    environment = {**os.environ, FOLDER_VARIABLE: str(folder)}
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        _end(process, 0)


def _comes(process: subprocess.Popen[bytes], reader: DiaryReader, count: float) -> bool:
    until = time.monotonic() + LIMIT_SECONDS
    while process.poll() is None and time.monotonic() < until:
        reader.read()
        if len(reader.lines) >= max(count, 1):
            return True
        time.sleep(LOOK_SECONDS)
    return False


def _process_of(rank: int, lines: Sequence[Line]) -> int | None:
    return next((line.pid for line in reversed(lines) if line.rank == rank), None)


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _end(process: subprocess.Popen[bytes], until: float) -> int | None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(max(0.0, until - time.monotonic()))
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


def pause_after(at: float, rank: int, lines: Sequence[Line]) -> float:
    """Return the seconds from a death to the next step of that worker's new process, or of any if its own takes none.

    The worker may have no new process, or may come after the last step: then it is infinite.
    """
    begun = min((line.at for line in lines if line.kind == BEGUN and line.rank == rank and line.at > at), default=inf)
    steps = [line for line in lines if line.kind == STEP and line.step]
    own = [line for line in steps if line.rank == rank] or steps
    return min((line.at - at for line in own if line.at > begun), default=inf)
