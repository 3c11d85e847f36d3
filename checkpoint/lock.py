"""``WriterLock``: one writer for a folder. The lock is the process's: it ends with it, however it ends."""

from __future__ import annotations

import fcntl
import os
import weakref

from ..base.errors import CheckpointError

_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """Lock of a folder, on a file that stays there.

    Args:
        folder: the folder; it is made if there is none.

    Raises:
        CheckpointError: another ``Checkpointer`` writes there, in this process or in another one.
    """

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._file = os.open(os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 100).decode(errors="replace").strip()
            os.close(self._file)
            raise CheckpointError(
                f"checkpoints in {folder} are written by {holder or 'another process'}; give each training a folder of its "
                "own, or close the other Checkpointer. In a distributed job, call init_process_group() before you make one"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
        self.close = weakref.finalize(self, os.close, self._file)
        self.close.atexit = False  # the end of the program still waits for a checkpoint that is being written
        _held.add(self)


class NoLock:
    """Stand-in for a lock where there are none."""

    def close(self) -> None:
        """Do nothing."""


def _close_in_child() -> None:
    # Else a forked child that lives longer would hold the lock of its parent.
    for lock in list(_held):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)
