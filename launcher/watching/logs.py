"""``telegrad logs``: what a job's workers have written, from the files that their launcher keeps."""

import json
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...base.printable import printable
from ..console import WorkerConsole
from .jobs import LocalWorker, NoJobError, choose_job, choose_workers

POLL_SECONDS = 0.2
LOG_READ_BYTES = 1 << 18


def show_logs(names: Sequence[str], key: str | None, lines: int | None, follow: bool, as_json: bool) -> bool:
    """Print the output of a job's workers, each line behind its worker's name; return whether there is a file of any.

    Args:
        names: the workers; all that run here, if there are none.
        key: the beginning of the job's id; None for the latest of this folder.
        lines: only the last lines of each; None for all.
        follow: print what comes, too, until the workers have ended.
        as_json: print the files instead, as one JSON object.

    Raises:
        NoJobError: there is no such job or worker.
    """
    try:
        job = choose_job(key)
    except NoJobError as error:
        raise NoJobError(
            f"{error}; logs of jobs that have ended are files in their --log-dir, telegrad_runs/"
        ) from None
    workers = choose_workers(job, names)
    if as_json:
        print(json.dumps({"job": job.key, "logs": {each.record.worker: each.record.log for each in workers}}, indent=2))
        return any(each.record.log for each in workers)
    console = WorkerConsole([printable(each.record.worker) for each in workers])
    logs = [(rank, worker, _Log(Path(worker.record.log))) for rank, worker in enumerate(workers) if worker.record.log]
    try:
        for rank, _, log in logs:
            log.skip_to_last(lines)
            _print(console, rank, log)
        while follow and _continues(console, logs):
            console.tick(time.monotonic())
            time.sleep(POLL_SECONDS)
        for rank, _, _ in logs:
            console.finish(rank)
    finally:
        for _, _, log in logs:
            log.close()
    return _tell_missing(workers, {rank: log for rank, _, log in logs})


def _continues(console: WorkerConsole, logs: Sequence[tuple[int, LocalWorker, "_Log"]]) -> bool:
    """Print what is new, and return whether more may come."""
    # Who runs is asked first: what a worker writes before it ends is read then.
    running = [worker.record.runs for _, worker, _ in logs]
    news = [_print(console, rank, log) for rank, _, log in logs]
    return any(running) or any(news)


def _print(console: WorkerConsole, rank: int, log: "_Log") -> bool:
    """Print what a log has more than before; return whether that was something."""
    some = False
    while data := log.read():
        console.write(rank, data, time.monotonic())
        some = True
    return some


def _tell_missing(workers: Sequence[LocalWorker], logs: dict[int, "_Log"]) -> bool:
    missing = [each.record.worker for rank, each in enumerate(workers) if rank not in logs or not logs[rank].found]
    if missing:
        print(f"no log is known of {printable(', '.join(missing))}: only telegrad run keeps logs")
    return len(missing) < len(workers)


def _nth_last(data: bytes, number: int) -> int:
    """Return the place of the newline of that number, counted from the end."""
    place = len(data)
    for _ in range(number):
        place = data.rindex(b"\n", 0, place)
    return place


def open_log(path: str | Path) -> BinaryIO:
    """Open a log to be read.

    Raises:
        OSError: it cannot be read, or is no file: a link, a folder or a pipe.
    """
    # Without O_NONBLOCK, opening a pipe of that name would wait for its other end.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
    file = os.fdopen(os.open(path, flags), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError("it is no file")


def end_of_log(path: str | Path, most: int) -> tuple[str, int]:
    """Return the last bytes of a log as text, and how many there are before them.

    Args:
        path: its file.
        most: the number of bytes.

    Raises:
        OSError: it cannot be read.
    """
    with open_log(path) as file:
        cut = max(os.fstat(file.fileno()).st_size - most, 0)
        file.seek(cut)
        return file.read(most).decode(errors="replace"), cut


class _Log:
    """Log of one worker, read from its beginning on; where it was renamed and begun again, the new file follows.

    Args:
        path: its file. It may be missing, and is left alone if it is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._open()
        self.found = self._file is not None

    def skip_to_last(self, lines: int | None) -> None:
        """Go to where the last lines begin; None goes nowhere."""
        if self._file is None or lines is None:
            return
        place = self._file.seek(0, os.SEEK_END)
        if place == 0 or lines == 0:
            return
        self._file.seek(place - 1)
        ends = lines + (self._file.read(1) == b"\n")  # the newline at the end begins no line
        while place > 0:
            begin = max(place - LOG_READ_BYTES, 0)
            self._file.seek(begin)
            data = self._file.read(place - begin)
            if (count := data.count(b"\n")) >= ends:
                self._file.seek(begin + _nth_last(data, ends) + 1)
                return
            ends, place = ends - count, begin
        self._file.seek(0)

    def read(self) -> bytes:
        """Return what comes next; nothing if there is no more now."""
        if self._file is None:
            return b""
        if data := self._file.read(LOG_READ_BYTES):
            return data
        if self._was_replaced():
            self.close()
            self._open()
            return self.read()
        return b""

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _was_replaced(self) -> bool:
        assert self._file is not None
        here = os.fstat(self._file.fileno())
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        return (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino)

    def _open(self) -> None:
        with suppress(OSError):
            self._file = open_log(self._path)
