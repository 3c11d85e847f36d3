"""Credentials of a job's workers on this machine: a folder for each, which goes with the job.

The launcher holds a lock on the folder around them. One that nobody holds was left by a job whose processes were all killed at
once, before any could remove it: the next job removes it.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..base import job_credentials

IN_MEMORY = "/dev/shm"
FOLDER_PREFIX = "telegrad-job-"


class CredentialFolders:
    """Folders for the workers of one job: mode 0700, in memory where the system has a place for that.

    Args:
        secret: the job's secret; None draws one.

    Attributes:
        secret: the job's secret, which every folder holds.
        root: the folder that holds all.
    """

    def __init__(self, secret: str | None = None) -> None:
        self.secret = secret or secrets.token_hex(32)
        place = _place() or tempfile.gettempdir()
        _remove_abandoned(Path(place))
        try:
            self.root, lock = _locked_folder(place)
        except OSError as error:
            raise _unusable(place, error) from error
        self._unlock = weakref.finalize(self, os.close, lock)

    def add(self, worker: str, files: Mapping[str, bytes] | None = None) -> dict[str, str]:
        """Make a worker's folder and return the environment variable that names it.

        Args:
            worker: its name.
            files: further files beside the secret: its certificate, its key, its authority.

        Raises:
            OSError: the folder cannot be written.
        """
        content = {job_credentials.SECRET: self.secret.encode(), **(files or {})}
        try:
            return _write(self.root / worker, content)
        except OSError as error:
            raise _unusable(str(self.root.parent), error) from error

    def note(self, name: str, text: str) -> None:
        """Write a file beside the workers' folders, for all of them; without space for it they do not hear it."""
        with suppress(OSError):
            (self.root / f".{name}").write_text(text)
            (self.root / f".{name}").replace(self.root / name)

    def mark(self, worker: str, name: str) -> None:
        """Put an empty file into a worker's folder, which says something by its name.

        Raises:
            OSError: it cannot be written.
        """
        (self.root / worker / name).touch(mode=0o600)

    def close(self) -> None:
        """Remove all folders."""
        shutil.rmtree(self.root, ignore_errors=True)
        self._unlock()


def _write(place: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Make a folder with files that only this user can read, and return the environment variable that names it."""
    shutil.rmtree(place, ignore_errors=True)  # of a worker that is started again
    place.mkdir(mode=0o700)
    for name, content in files.items():
        with open(os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    return {job_credentials.VARIABLE: str(place)}


def _unusable(place: str, error: OSError) -> OSError:
    why = os.strerror(error.errno or 0)
    advice = f"free some space (`df {place}`), or set XDG_RUNTIME_DIR to a folder of your own in memory"
    return OSError(f"the credentials of the workers cannot be written in {place}: {why}; {advice}")


def _locked_folder(place: str) -> tuple[Path, int]:
    """Make a folder, and return it and a descriptor of it that holds its lock."""
    while True:
        root = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=place))
        with suppress(
            BlockingIOError, FileNotFoundError
        ):  # another launcher has found it before it was locked, and removes it
            lock = _lock(root)
            if root.exists():
                return root, lock
            os.close(lock)


def _lock(folder: Path) -> int:
    """Return a descriptor of a folder that holds its lock. Processes that are forked keep it, others do not get it.

    Raises:
        OSError: another holds it, or there is no such folder of this user.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{folder} belongs to another user")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove_abandoned(place: Path) -> None:
    for folder in place.glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):  # its job runs, or it is another user's
            lock = _lock(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _place() -> str | None:
    """Return a folder in memory that this user may write; None if there is none."""
    for place in (os.environ.get("XDG_RUNTIME_DIR"), IN_MEMORY):
        if place and os.access(place, os.W_OK | os.X_OK):
            return place
    return None
