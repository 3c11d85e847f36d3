"""Output of a worker's script: comes through a pipe, goes to the worker's log unchanged, and to the terminal."""

import os
import selectors
import time
from pathlib import Path

from ..console import WorkerConsole
from .log import WorkerLog

OUTPUT_READ_BYTES = 1 << 16
MOST_OUTPUT_CHUNKS = 16  # that are read at the exit of a worker; what it started may go on writing


class WorkerOutput:
    """Pipe from one worker, registered with ``selector``. Its reader here is ``read``; the worker gets ``writing_end``.

    Args:
        rank: the worker's rank, by which ``console`` knows it.
        log: file that receives the output.
        console: shows the output.
        selector: tells when there is some.
        restart: how often the worker has been started again; then the log goes on.

    Raises:
        LogDirError: the log cannot be written.
    """

    def __init__(
        self, rank: int, log: Path, console: WorkerConsole, selector: selectors.BaseSelector, restart: int = 0
    ) -> None:
        self._rank = rank
        self._console = console
        self._selector = selector
        self._log = WorkerLog(log, restart)
        self._pipe: int | None
        self._pipe, self.writing_end = os.pipe()
        os.set_blocking(self._pipe, False)
        selector.register(self._pipe, selectors.EVENT_READ, self.read)

    def read(self) -> bool:
        """Take what is in the pipe, at most 64 KiB; return whether there was anything."""
        if self._pipe is None:
            return False
        try:
            data = os.read(self._pipe, OUTPUT_READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self.write(data)
        else:
            self._close_pipe()
        return bool(data)

    def drain(self) -> None:
        """Take all that is in the pipe now, and show an incomplete last line."""
        for _ in range(MOST_OUTPUT_CHUNKS):
            if not self.read():
                break
        self._console.finish(self._rank)

    def write(self, data: bytes) -> None:
        """Write ``data`` to the log and the terminal."""
        self._log.write(data)
        self._console.write(self._rank, data, time.monotonic())

    def close(self) -> None:
        """Close the pipe and the log."""
        self._close_pipe()
        self._log.close()

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            self._selector.unregister(self._pipe)
            os.close(self._pipe)
            self._pipe = None
