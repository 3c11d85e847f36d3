"""Title of this process: the words that ``ps`` and ``top`` show for it."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 15  # of the short title; Linux cuts it there
ARG_START = 48 - 3  # position in /proc/self/stat, counted from the field after the command


def title_worker(name: str) -> None:
    """Show a worker's name and its program instead of the command line: ``telegrad trainer1 of train.py``.

    Args:
        name: the worker's name; its end is the process's short name, which ``top`` shows.
    """
    first, second, *_ = [*sys.argv, "", ""]
    program = second if first == "-m" else "" if first == "-c" else os.path.basename(first)
    set_title(f"telegrad {name} of {program or 'a program'}", name)


def set_title(title: str, short: str) -> None:
    """Set both titles; where the system does not allow it they stay as they are.

    Args:
        title: takes the place of the command line, and is cut to its length.
        short: the process's short name, of which the last 15 bytes are shown.
    """
    with suppress(OSError):
        Path("/proc/self/comm").write_bytes(short.encode()[-MOST_BYTES:])
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = map(int, fields[ARG_START : ARG_START + 2])
        if 0 < start < end:
            ctypes.memmove(start, title.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)
