"""Words on how a worker ended, from its exit code, its report and the end of its log."""

import re
import signal
from pathlib import Path

from .line_filters import TRACEBACK_BEGIN

TAIL_BYTES = 1 << 16  # of a log
MOST_LINES = 12

_CANCELLED = re.compile(r"^(asyncio\.exceptions\.|concurrent\.futures\._base\.)?CancelledError")
_FATAL = re.compile(r"^Fatal Python error: ")
_MEANINGS = {
    signal.SIGKILL: "killed, perhaps by the out-of-memory killer or kill -9",
    signal.SIGSEGV: "a crash in native code",
    signal.SIGABRT: "native code aborted, its last message is in the log",
    signal.SIGBUS: "a crash in native code, or shared memory (/dev/shm) is full",
    signal.SIGTERM: "somebody other than the launcher asked it to end",
    signal.SIGPIPE: "the reader of its output went away",
}


def signal_name(signum: int) -> str:
    """Return a signal's name and number: ``SIGKILL (9)``."""
    try:
        return f"{signal.Signals(signum).name} ({signum})"
    except ValueError:  # real-time signals have no names of their own
        return f"signal {signum}"


def describe_exit(code: int) -> str:
    """Return an exit code (minus the number, for a signal) in words."""
    if code >= 0:
        return f"exited with code {code}"
    meaning = _MEANINGS.get(signal.Signals(-code)) if -code in signal.valid_signals() and -code < 32 else None
    return f"died of {signal_name(-code)}" + (f": {meaning}" if meaning else "")


def describe_error(log: Path, code: int, traceback: str = "") -> list[str]:
    """Return lines about a failure: the end of the reported traceback, else of the log's last one, else the log's last line.

    Args:
        log: file with the worker's output; it may be missing.
        code: the worker's exit code; minus the number, for a signal.
        traceback: that the worker reported; may be empty.
    """
    lines = _printable(traceback) if traceback else _tail(log)
    crash = code < 0 and not traceback
    begin = _fatal_error(lines) if crash else _last_traceback(lines)
    if begin is not None:
        block = lines[begin:]
        return block[:MOST_LINES] if crash else _end_of_traceback(block)
    written = [line for line in lines if line.strip()]
    return [f"last line: {written[-1].strip()[:500]}"] if written else []


def headline(log: Path, code: int, traceback: str = "") -> str:
    """Return one of these lines: the exception with its message; empty if there was none."""
    words = [line for line in describe_error(log, code, traceback) if not line.startswith((" ", "last line: "))]
    return words[0] if words else ""


def _tail(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return _printable(text)


def _printable(text: str) -> list[str]:
    return ["".join(c if c.isprintable() else " " for c in line).rstrip() for line in re.split(r"\r?\n", text)]


def _fatal_error(lines: list[str]) -> int | None:
    return next((i for i, line in enumerate(lines) if _FATAL.match(line)), None)


def _last_traceback(lines: list[str]) -> int | None:
    """Return where the last one begins that is not a consequence of the end (ignored by Python, cancelled by gRPC)."""
    begins = [i for i, line in enumerate(lines) if TRACEBACK_BEGIN.match(line)]
    reasons = [i for i in begins if i == 0 or not lines[i - 1].startswith("Exception ignored")]
    reasons = [i for i in reasons if not _CANCELLED.match(_exception(lines[i:]))] or reasons
    return max(reasons or begins, default=None)


def _exception(block: list[str]) -> str:
    return next((line for line in block[1:] if line and not line[0].isspace()), "")


def _end_of_traceback(block: list[str]) -> list[str]:
    """Return the lines from the innermost frame to the end of the message."""
    error = next((i for i, line in enumerate(block) if i and line and not line[0].isspace()), len(block))
    frame = max((i for i in range(error) if block[i].lstrip().startswith("File ")), default=0)
    message = block[error:]
    end = next((i for i, line in enumerate(message) if not line), len(message))
    return [*block[frame:error], *message[: min(end, MOST_LINES)]]
