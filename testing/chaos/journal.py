"""Journal of calls: which were made, how they ended, and which ran; a file for each worker that survives ``kill -9``.

One JSON object a line, written with one system call before the next step is taken, so the file is complete up
to the end of its worker.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
CallId = tuple[int, int]
ANSWERED = "answered"
UNENDED = "unended"


class WrongResultError(Exception):
    """A call was answered, and the answer is wrong."""


class Journal:
    """Journal of one worker, which alone writes it."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.rank = rank
        self._file = os.open(folder / f"journal-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def attempt(self, kind: str, names: Sequence[str], limit: float, action: Callable[[CallId], T]) -> T | None:
        """Run ``action`` and record how it ended; return its result, or ``None`` if it failed.

        Args:
            kind: groups attempts in the report.
            names: the workers that it depends on; an error must name one of them.
            limit: seconds within which it must end.
            action: gets the attempt's id; it raises ``WrongResultError`` if it gets a wrong answer.
        """
        with self._lock:
            call = (self.rank, next(self._numbers))
        self._write({"begin": call, "kind": kind, "names": names, "limit": limit})
        began = time.monotonic()
        result, outcome, text = None, ANSWERED, ""
        try:
            result = action(call)
        except Exception as error:
            outcome, text = type(error).__name__, str(error)
        value = result if isinstance(result, int) else None
        self._write({"end": call, "outcome": outcome, "text": text, "value": value, "took": time.monotonic() - began})
        return result

    def ran(self, call: CallId, value: int) -> None:
        """Record that a call ran here, and its result."""
        self._write({"ran": call, "value": value})

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, entry: dict[str, Any]) -> None:
        os.write(self._file, (json.dumps(entry) + "\n").encode())


@dataclass
class Attempt:
    """Attempt of a call, as its caller saw it."""

    call: CallId
    kind: str
    names: list[str]
    limit: float
    outcome: str = UNENDED
    text: str = ""
    value: int | None = None
    took: float = 0.0


@dataclass
class Run:
    """Run of a call, as its callee saw it."""

    call: CallId
    value: int
    rank: int


def read_journals(folder: Path, world_size: int) -> tuple[list[Attempt], list[Run]]:
    """Return all attempts and all runs of a job."""
    attempts: dict[CallId, Attempt] = {}
    runs: list[Run] = []
    for rank in range(world_size):
        for entry in _entries(folder / f"journal-{rank}"):
            if "begin" in entry:
                call = tuple(entry.pop("begin"))
                attempts[call] = Attempt(call, **entry)
            elif "end" in entry:
                attempt = attempts[tuple(entry.pop("end"))]
                for name, value in entry.items():
                    setattr(attempt, name, value)
            else:
                runs.append(Run(tuple(entry["ran"]), entry["value"], rank))
    return list(attempts.values()), runs


def _entries(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []  # its worker never started
    lines = path.read_bytes().split(b"\n")[:-1]  # a partial last line was cut off when its worker was killed
    return [json.loads(line) for line in lines]
