"""Tracebacks in what a worker writes: left out of the lines that are shown, found at the end of a log."""

import re
from contextlib import suppress
from pathlib import Path

from .engines.log import RESTART_LINE, earlier

TAIL_BYTES = 1 << 16  # of a log
MOST_LINES = 12
OWN_FILES = re.escape(f"{Path(__file__).parents[1]}/")

_BEGIN = re.compile(r"^\s*(\+ Exception Group )?Traceback \(most recent call last\):")
_AROUND = re.compile(
    r"^(During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:"
    r"|Exception ignored in: .*|Task exception was never retrieved|future: <.*)$"
)
_CANCELLED = re.compile(r"^(asyncio\.exceptions\.|concurrent\.futures\._base\.)?CancelledError")
_FRAME = re.compile(r'^\s*File "')
_LIBRARY = re.compile(
    rf'^\s*File "(<frozen |.*/lib(64)?/python3\.\d+/(?!site-packages/telegrad/examples/)|{OWN_FILES}(?!examples/))'
)
_CALLEE = re.compile(r"^on worker '.*':$")
CAUSED = "The above exception was the direct cause of the following exception:"
_FATAL = re.compile(r"^Fatal Python error: ")


class TracebackFilter:
    """Filter for one worker's lines: drops tracebacks, with the line of the exception and what Python writes around them."""

    def __init__(self) -> None:
        self._inside = False
        self._group = False  # all lines of an exception group's traceback are indented, also the last one
        self._after = False  # blank lines that follow belong to it

    def keep(self, lines: list[str]) -> list[str]:
        """Return the lines that are to be shown."""
        return [line for line in lines if not self._drops(line)]

    def _drops(self, line: str) -> bool:
        if _BEGIN.match(line):
            self._inside, self._group, self._after = True, line.startswith(" "), True
            return True
        if self._inside and line.startswith((" ", "\t")):
            return True
        exception = self._inside and not self._group
        self._inside = False
        if exception or _AROUND.match(line):
            self._after = True
            return True
        self._after = self._after and not line.strip()
        return self._after


def describe_error(log: Path, code: int, traceback: str = "") -> list[str]:
    """Return lines about a failure: the end of the reported traceback, else of the log's last one, else the log's last line.

    The frame is the innermost one of the user's program. If the exception comes from a call, the callee's frame follows.

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
        return block[:MOST_LINES] if crash else [*_frame(block), *_message(block), *_frame_at_callee(lines[:begin])]
    written = [line for line in lines if line.strip()]
    return [f"last line: {written[-1].strip()[:500]}"] if written else []


def headline(log: Path, code: int, traceback: str = "") -> str:
    """Return one of these lines: the exception with its message; empty if there was none.

    Args:
        log: the worker's log.
        code: its exit code.
        traceback: the traceback that it reported, if any.
    """
    words = [line for line in describe_error(log, code, traceback) if not line.startswith((" ", "last line: "))]
    return words[0] if words else ""


def _tail(log: Path) -> list[str]:
    text = b""
    for path in (log, earlier(log)):
        with suppress(OSError), path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES + len(text)))
            text = file.read() + text
    own = text.decode(errors="replace").rpartition(RESTART_LINE)[2]  # not what came before a restart
    return _printable(own) if own else []


def _printable(text: str) -> list[str]:
    return ["".join(c if c.isprintable() else " " for c in line).rstrip() for line in re.split(r"\r?\n", text)]


def _fatal_error(lines: list[str]) -> int | None:
    return next((i for i, line in enumerate(lines) if _FATAL.match(line)), None)


def _last_traceback(lines: list[str]) -> int | None:
    """Return where the last one begins that is not a consequence of the end (ignored by Python, cancelled by gRPC)."""
    begins = [i for i, line in enumerate(lines) if _BEGIN.match(line)]
    reasons = [i for i in begins if i == 0 or not lines[i - 1].startswith("Exception ignored")]
    reasons = [i for i in reasons if not _CANCELLED.match(_exception(lines[i:]))] or reasons
    return max(reasons or begins, default=None)


def _exception(block: list[str]) -> str:
    return next((line for line in block[1:] if line and not line[0].isspace()), "")


def _frame(block: list[str]) -> list[str]:
    """Return the lines of the innermost frame of a traceback that is not a library's, else of the innermost one."""
    end = _end_of_frames(block)
    frames = [i for i in range(end) if _FRAME.match(block[i])]
    users = [i for i in frames if not _LIBRARY.match(block[i])] or frames
    return block[users[-1] : min((i for i in frames if i > users[-1]), default=end)] if users else []


def _message(block: list[str]) -> list[str]:
    message = block[_end_of_frames(block) :]
    end = next((i for i, line in enumerate(message) if not line), len(message))
    return message[: min(end, MOST_LINES)]


def _end_of_frames(block: list[str]) -> int:
    return next((i for i, line in enumerate(block) if i and line and not line[0].isspace()), len(block))


def _frame_at_callee(before: list[str]) -> list[str]:
    """Return which worker raised an exception and where, if the lines ``before`` its traceback end with that of a callee.

    Without the frame, if no function of the user's was reached there.
    """
    callees = [i for i, line in enumerate(before) if _CALLEE.match(line)]
    if not callees or [line for line in before if line][-1] != CAUSED:
        return []
    there = before[callees[-1] :]
    there = there[: there.index('"""') if '"""' in there else None]
    frame = _frame(there[_last_traceback(there) or 0 :])
    return [there[0], *frame] if frame and not _LIBRARY.match(frame[0]) else [there[0].rstrip(":")]
