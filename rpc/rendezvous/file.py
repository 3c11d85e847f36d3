"""Log of a rendezvous in a file, on this machine or on a disk that several machines share, read and written under a lock.

The file must belong to this user alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator

from ...base.errors import RendezvousError
from ..security.private_file import open_private

FILE_POLL_SECONDS = 0.02
FILE_GRACE_SECONDS = 1.0  # time after the deadline to write into the file that this worker gave up
MOST_FILE_BYTES = 64 * 1024 * 1024


class FileLog:
    """Log in a file.

    Args:
        path: the file.
        timeout: seconds of the whole rendezvous.
    """

    pause = FILE_POLL_SECONDS
    remedy = "delete it, or name a new file"

    def __init__(self, path: str, timeout: float) -> None:
        self.name = f"the rendezvous file {path}"
        self._path = path
        self._read_bytes = 0
        self.renew(timeout)

    def renew(self, timeout: float) -> None:
        """Wait for the lock up to ``timeout`` seconds from now."""
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout

    def append(self, line: str) -> None:
        with self._locked(os.O_APPEND | os.O_CREAT, fcntl.LOCK_EX) as file:
            end = os.fstat(file).st_size
            try:
                _write(file, f"{line}\n".encode())
                os.fsync(file)  # raises if the disk is full, even where the write did not
            except OSError as error:
                os.ftruncate(file, end)  # else the next worker's line would begin behind half a line
                raise self._error(f"cannot be written: {error.strerror}", "free space, or name another file") from error

    def read(self) -> list[str]:
        if not os.path.lexists(self._path):
            return []
        with self._locked(0, fcntl.LOCK_SH) as file:
            content = os.pread(file, MOST_FILE_BYTES, self._read_bytes)
        self._read_bytes += len(content)
        return content.decode(errors="replace").splitlines()

    @contextlib.contextmanager
    def _locked(self, flags: int, lock: int) -> Iterator[int]:
        """Open the file and lock it, until the end of the block. Wait for the lock until shortly after the deadline."""
        try:
            file = open_private(self._path, os.O_RDWR | flags, stat.S_IWGRP | stat.S_IWOTH)
        except OSError as error:
            raise self._error(f"cannot be used: {error.strerror}", "name a new file in a folder of your own") from error
        try:
            while not _try_lock(file, lock):
                if time.monotonic() > self._deadline + FILE_GRACE_SECONDS:
                    raise self._error(
                        f"was locked by another process for {self._timeout:g} s", "end that process, or name a new file"
                    )
                time.sleep(FILE_POLL_SECONDS)
            yield file
        finally:
            os.close(file)

    def _error(self, what: str, advice: str) -> RendezvousError:
        return RendezvousError(f"{self.name} {what}; {advice}")


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
