"""Logs of a job on disk: their folder, and of each worker one file, and the one before it.

So a program that writes without end fills no disk.
"""

import errno
import fcntl
import os
import stat
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from ..errors import LogDirError
from ..progress import report
from ..spec import JobSpec

RUNS = Path("telegrad_runs")
MOST_LOG_BYTES = 128 << 20  # of each of the two files
MIB = 1 << 20
RESTART_LINE = "--- telegrad: restart "
"""Beginning of the line in a log after which a restarted worker writes."""


def log_folder(spec: JobSpec) -> Path:
    """Return the folder for a job's logs: the user's, or one with the time in its name."""
    return spec.log_dir or RUNS / f"{datetime.now():%Y-%m-%d-%H%M%S}-{spec.title}"


def make_log_dir(spec: JobSpec) -> Path:
    """Make the folder for a job's logs, and return it.

    Raises:
        LogDirError: it cannot be made.
    """
    log_dir = log_folder(spec)
    try:
        if spec.log_dir is None:
            return _make_new(log_dir)
        log_dir.mkdir(parents=True, exist_ok=True)
        return log_dir
    except OSError as error:
        raise LogDirError(f"the folder {str(log_dir)!r} for the logs cannot be made: {error.strerror}") from error


def _make_new(folder: Path) -> Path:
    """Make the folder, or one with a number after its name where jobs began in the same second."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for name in (folder.name, *(f"{folder.name}-{i}" for i in range(2, 1000))):
        with suppress(FileExistsError):
            folder.with_name(name).mkdir()
            return folder.with_name(name)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def earlier(path: Path) -> Path:
    """Return the path of the file that holds what came before the log's."""
    return path.with_name(f"{path.name}.1")


class WorkerLog:
    """Log of one worker.

    Args:
        path: its file; when it is full it takes the place of the one before it, and a new one begins.
        restart: how often the worker has been started again; if it was, the file goes on after a line that says so.

    Raises:
        LogDirError: it cannot be written, or another launcher writes it.
    """

    def __init__(self, path: Path, restart: int = 0) -> None:
        self._path = path
        self._file: int | None = None
        self._files = 1
        try:
            self._open(fresh=not restart)
            if not restart:
                earlier(path).unlink(missing_ok=True)  # of another job
        except BlockingIOError:
            raise LogDirError(f"another job that runs writes the log {str(path)!r}") from None
        except OSError as error:
            raise LogDirError(f"the log {str(path)!r} cannot be written: {error.strerror}") from error
        if restart:
            self.write(f"{RESTART_LINE}{restart} of {path.stem} ---\n".encode())

    def write(self, data: bytes) -> None:
        """Write ``data``. A disk that is full ends the log and not the job."""
        if self._file is None:
            return
        try:
            if self._size >= MOST_LOG_BYTES:
                self._turn()
            self._size += len(data)
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self.close()
            self._tell(f"ends here, it cannot be written: {error}")

    def close(self) -> None:
        """Close the file; what is written later is dropped."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, fresh: bool = True) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        about = os.fstat(self._file)
        if stat.S_ISREG(about.st_mode):
            self._lock()
        if fresh and about.st_size:
            os.ftruncate(self._file, 0)
        self._size = 0 if fresh else about.st_size

    def _lock(self) -> None:
        """Keep other launchers from writing the file, until it is closed.

        Raises:
            BlockingIOError: one does.
        """
        assert self._file is not None, "it was opened"
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise
        except OSError:  # this file system has no locks
            pass

    def _turn(self) -> None:
        self.close()
        os.replace(self._path, earlier(self._path))
        self._open()
        self._files += 1
        if self._files == 3:
            self._tell(
                f"is longer than {2 * MOST_LOG_BYTES // MIB} MiB: only its end is kept, in this file and in "
                f"{earlier(self._path).name}; write more to a file of your own"
            )

    def _tell(self, words: str) -> None:
        report(f"the log of {self._path.stem} {words}")
