"""Diary of a training that may be killed: a file for each worker, in which its processes write what they do, line by line."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER_VARIABLE = "TELEGRAD_CHAOS_FOLDER"
BEGUN, STEP, DONE = "begun", "step", "done"


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        kind: a process has begun, a step was taken, or the training is done.
        rank: the worker's.
        pid: its process.
        at: when, by the machine's monotonic clock, in seconds.
        step: number of the step, from 1; 0 for other lines.
        note: what the step used, or the result of the training: a text.
    """

    kind: str
    rank: int
    pid: int
    at: float
    step: int = 0
    note: str = ""


class Diary:
    """Diary that a worker's process writes; each line with one system call, so that ``kill -9`` leaves whole lines."""

    def __init__(self) -> None:
        self._rank = int(os.environ["RANK"])
        path = Path(os.environ[FOLDER_VARIABLE]) / f"diary-{self._rank}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._write(BEGUN)

    def step(self, step: int, note: object) -> None:
        """Write that a step was taken, and what it used."""
        self._write(STEP, step, str(note))

    def done(self, note: object) -> None:
        """Write that the training is done, and its result."""
        self._write(DONE, 0, str(note))

    def __enter__(self) -> Diary:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def _write(self, kind: str, step: int = 0, note: str = "") -> None:
        line: dict[str, Any] = {"kind": kind, "pid": os.getpid(), "at": time.monotonic(), "step": step, "note": note}
        os.write(self._file, (json.dumps(line) + "\n").encode())


class DiaryReader:
    """Reader of the diaries of a training that goes on."""

    def __init__(self, folder: Path, size: int) -> None:
        self._paths = [folder / f"diary-{rank}" for rank in range(size)]
        self._read = [0] * size
        self.lines: list[Line] = []

    def read(self) -> list[Line]:
        """Read what is new, and return it; ``lines`` has all."""
        new = [line for rank in range(len(self._paths)) for line in self._new(rank)]
        self.lines += new
        return new

    def _new(self, rank: int) -> Iterator[Line]:
        try:
            with self._paths[rank].open("rb") as file:
                file.seek(self._read[rank])
                data = file.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read[rank] += len(whole)
        for text in whole.splitlines():
            yield Line(rank=rank, **json.loads(text))
