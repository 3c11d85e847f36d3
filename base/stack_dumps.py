"""Stacks of this process's threads, which it writes to a private file when it gets a signal.

``faulthandler`` writes them in the signal's handler, in C. So they come also while code outside Python holds the interpreter,
and the process cannot answer in any other way. Until then this costs one open file.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from typing import TYPE_CHECKING

from .job_records import DUMPS
from .processes import caught_signals

if TYPE_CHECKING:
    from .job_folder import JobFolder

SIGNALS = range(signal.SIGRTMAX - 2, signal.SIGRTMAX - 12, -1)
STANDARD_ERROR = 2
_chosen: list[int] = []  # the signal of this process, once it was chosen


class StackDumps:
    """Dumps of this process's stacks.

    Args:
        folder: folder of the file.
        stem: beginning of the file's name.

    Attributes:
        signal: at this signal they are written; 0 if the program handles all that could be used.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, folder: JobFolder, stem: str) -> None:
        self.signal = _choose_signal()
        self._file = folder.create(stem + DUMPS, os.O_WRONLY | os.O_APPEND)
        if self.signal:
            faulthandler.register(self.signal, file=self._file, all_threads=True, chain=False)

    def close(self) -> None:
        """Close the file. A signal that comes late is still handled, as it would end the process otherwise."""
        if self._file >= 0:
            if self.signal:
                faulthandler.register(self.signal, file=STANDARD_ERROR, all_threads=True, chain=False)
            os.close(self._file)
            self._file = -1


def _choose_signal() -> int:
    if not _chosen:
        taken = caught_signals(os.getpid())
        _chosen.append(next((each for each in SIGNALS if not taken >> (each - 1) & 1), 0))
    return _chosen[0]
