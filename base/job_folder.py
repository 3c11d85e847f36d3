"""Private folder of a user, in which its workers leave records for commands; no other user may read or write there.

Each access goes through the folder's descriptor, and follows no link. So what was checked once stays what is used.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

VARIABLE = "TELEGRAD_JOBS_DIR"
OTHERS = stat.S_IRWXG | stat.S_IRWXO
OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
MOST_NAMES = 20_000


def job_folders() -> list[Path]:
    """Return the folders in which records may be; a new one goes to the first that can be used.

    A job may run with other variables than a terminal, so both places are looked at, unless the user has named one.
    """
    if given := os.environ.get(VARIABLE):
        return [Path(given).absolute()]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    caches = [os.environ.get("XDG_CACHE_HOME") or "", os.path.expanduser("~/.cache")]
    bases = [Path(each) for each in (runtime, *caches) if os.path.isabs(each)]
    return [base / "telegrad" / "jobs" for base in dict.fromkeys(bases)]


class JobFolder:
    """Folder of records. It must be closed.

    Args:
        path: where it is.
        make: make it, with the folders above it, if it is not there.

    Raises:
        OSError: it cannot be opened, is a link, belongs to another user, or others may use it.
    """

    def __init__(self, path: Path, make: bool = False) -> None:
        self.path = path
        self.descriptor = -1
        if make:
            _make(path)
        self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | OPEN_FLAGS)
        facts = os.fstat(self.descriptor)
        if facts.st_uid != os.geteuid() or facts.st_mode & OTHERS:
            self.close()
            mode = stat.S_IMODE(facts.st_mode)
            raise PermissionError(
                errno.EPERM, f"it must be yours alone: it belongs to user {facts.st_uid}, mode {mode:o}", str(path)
            )

    def __enter__(self) -> JobFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; the files stay."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def place(self, name: str) -> str:
        """Return a path of a file for system calls that take no folder's descriptor; it is short, as a socket's must be."""
        return f"/proc/self/fd/{self.descriptor}/{name}"

    def names(self) -> list[str]:
        """Return the names of its files, at most ``MOST_NAMES``."""
        return sorted(os.listdir(self.descriptor)[:MOST_NAMES])

    def write(self, name: str, data: bytes) -> None:
        """Write a file, of mode 0600, in one step: a reader sees all of it, or what was there before."""
        draft = f".{name}.{secrets.token_hex(4)}"
        try:
            with open(self.create(draft), "wb") as file:
                file.write(data)
            os.rename(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except BaseException:
            self.remove(draft)
            raise

    def create(self, name: str, flags: int = os.O_WRONLY) -> int:
        """Make a file of mode 0600 that is not there yet, and return its descriptor."""
        return os.open(name, flags | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600, dir_fd=self.descriptor)

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a regular file of this user, and return its descriptor.

        Raises:
            OSError: it cannot be opened, or is no such file.
        """
        descriptor = os.open(name, flags | OPEN_FLAGS, dir_fd=self.descriptor)
        facts = os.fstat(descriptor)
        if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid():
            return descriptor
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it is no file of yours", name)

    def read(self, name: str, most: int) -> bytes:
        """Return what a file has, at most ``most`` bytes.

        Raises:
            OSError: it cannot be read, or is no regular file of this user.
        """
        with open(self.open(name), "rb") as file:
            return file.read(most)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self.descriptor)


def new_records_folder() -> JobFolder:
    """Return the folder for new records; it must be closed.

    Raises:
        OSError: there is none that can be used.
    """
    failed: OSError = FileNotFoundError(errno.ENOENT, "there is no folder for records")
    for path in job_folders():
        try:
            return JobFolder(path, make=True)
        except OSError as error:
            failed = error
    raise failed


def _make(path: Path) -> None:
    # What the system makes for a session is not made here; a user's own folders are.
    if VARIABLE in os.environ or path.parents[1].name == ".cache":
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.mkdir(exist_ok=True, mode=0o700)
    path.mkdir(exist_ok=True, mode=0o700)
