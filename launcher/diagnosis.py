"""Says in words how a worker ended, from its exit code and the end of its log."""

import re
import signal
from pathlib import Path

TAIL = 1 << 16  # bytes of a log that are looked at
MOST_LINES = 12

_TRACEBACK = re.compile(r"^\s*(\+ Exception Group )?Traceback \(most recent call last\):")
_FATAL = re.compile(r"^Fatal Python error: ")
_MEANINGS = {
    signal.SIGKILL: "killed, perhaps by the out-of-memory killer or kill -9",
    signal.SIGSEGV: "a crash in native code",
    signal.SIGABRT: "native code gave up, its last words are in the log",
    signal.SIGBUS: "a crash in native code, or shared memory (/dev/shm) is full",
    signal.SIGTERM: "somebody other than the launcher asked it to end",
    signal.SIGPIPE: "the reader of its output went away",
}


def signal_name(signum: int) -> str:
    """``SIGKILL (9)``."""
    try:
        return f"{signal.Signals(signum).name} ({signum})"
    except ValueError:  # real-time signals have no names of their own
        return f"signal {signum}"


def how_it_ended(code: int) -> str:
    """An exit code (minus the number, for a signal) in words."""
    if code >= 0:
        return f"exited with code {code}"
    meaning = _MEANINGS.get(signal.Signals(-code)) if -code in signal.valid_signals() and -code < 32 else None
    return f"died of {signal_name(-code)}" + (f": {meaning}" if meaning else "")


def last_words(log: Path, code: int) -> list[str]:
    """What the log's end says about a death with this code: the last traceback's end, else the last line written."""
    lines = _tail(log)
    begin = _fatal_error(lines) if code < 0 else _last_traceback(lines)
    if begin is not None:
        block = lines[begin:]
        return block[:MOST_LINES] if code < 0 else _end_of_traceback(block)
    written = [line for line in lines if line.strip()]
    return [f"last line: {written[-1].strip()[:500]}"] if written else []


def headline(log: Path, code: int) -> str:
    """One line of that: the exception with its message."""
    words = [line for line in last_words(log, code) if not line.startswith((" ", "last line: "))]
    return words[0] if words else ""


def _tail(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return ["".join(c if c.isprintable() else " " for c in line).rstrip() for line in re.split(r"\r?\n", text)]


def _fatal_error(lines: list[str]) -> int | None:
    return next((i for i, line in enumerate(lines) if _FATAL.match(line)), None)


def _last_traceback(lines: list[str]) -> int | None:
    """Where the last one begins; what Python ignored while it went down is told after it and is not the reason."""
    begins = [i for i, line in enumerate(lines) if _TRACEBACK.match(line)]
    reasons = [i for i in begins if i == 0 or not lines[i - 1].startswith("Exception ignored")]
    return max(reasons or begins, default=None)


def _end_of_traceback(block: list[str]) -> list[str]:
    """From the innermost frame to the message's end."""
    error = next((i for i, line in enumerate(block) if i and line and not line[0].isspace()), len(block))
    frame = max((i for i in range(error) if block[i].lstrip().startswith("File ")), default=0)
    message = block[error:]
    end = next((i for i, line in enumerate(message) if not line), len(message))
    return [*block[frame:error], *message[: min(end, MOST_LINES)]]
