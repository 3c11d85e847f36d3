"""Filters between the bytes that a worker writes and the lines of it that a terminal shows. No clock and no I/O here."""

import re

PARTIAL_SECONDS = 0.5
MOST_LINE_BYTES = 1 << 14
TRACEBACK_BEGIN = re.compile(r"^\s*(\+ Exception Group )?Traceback \(most recent call last\):")

_AROUND_TRACEBACK = re.compile(
    r"^(During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:"
    r"|Exception ignored in: .*|Task exception was never retrieved|future: <.*)$"
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_COMMAND = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[0-9;:]*m)")


class LineSplitter:
    """Splitter of one worker's output into lines that can stand beside other workers' lines.

    Complete lines are shown at once; a partial one (a prompt, a progress bar) after ``PARTIAL_SECONDS``; a very long one in
    pieces. Where carriage returns overwrote text, the last state is shown. Codes that would move the cursor, clear the screen
    or change the character set are dropped, and bytes that are not text are shown as ``\\xNN``.

    Args:
        colours: keep the worker's colours.
    """

    def __init__(self, colours: bool) -> None:
        self.due: float | None = None  # when to call `flush_due`
        self._colours = colours
        self._partial = b""
        self._showed_part = False  # of the line that is being written

    def feed(self, data: bytes, now: float) -> list[str]:
        """Return the lines that ``data``, received at the time ``now``, completes."""
        *complete, self._partial = (self._partial + data).split(b"\n")
        lines = [line for part in complete for line in self._completed(part)]
        while len(self._partial) > MOST_LINE_BYTES:
            lines += self._cut()
        # The time counts from the first byte of the partial line, so that a progress bar that never pauses is seen.
        if not self._partial:
            self.due = None
        elif complete or self.due is None:
            self.due = now + PARTIAL_SECONDS
        return lines

    def flush_due(self, now: float) -> list[str]:
        """Return the partial line, if it has waited long enough."""
        return self.flush() if self.due is not None and now >= self.due else []

    def flush(self) -> list[str]:
        """Return the partial line, if there is one."""
        shown = _visible(self._partial)
        self.due, self._partial = None, b""
        if not shown:
            return []
        self._showed_part = True
        return [self._present(shown)]

    def _completed(self, line: bytes) -> list[str]:
        shown = _visible(line)
        rest_of_shown, self._showed_part = self._showed_part, False
        return [] if rest_of_shown and not shown else [self._present(shown)]

    def _cut(self) -> list[str]:
        end = MOST_LINE_BYTES
        while end > MOST_LINE_BYTES - 4 and self._partial[end] & 0xC0 == 0x80:  # not inside a UTF-8 character
            end -= 1
        piece, self._partial = self._partial[:end], self._partial[end:]
        self._showed_part = True
        return [self._present(_visible(piece))]

    def _present(self, shown: bytes) -> str:
        text = _COMMAND.sub(self._keep_colour, shown.decode(errors="backslashreplace"))
        text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
        return f"{text}\x1b[0m" if "\x1b" in text else text

    def _keep_colour(self, command: re.Match[str]) -> str:
        return command[0] if self._colours and _COLOUR.fullmatch(command[0]) else ""


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
        if TRACEBACK_BEGIN.match(line):
            self._inside, self._group, self._after = True, line.startswith(" "), True
            return True
        if self._inside and line.startswith((" ", "\t")):
            return True
        exception = self._inside and not self._group
        self._inside = False
        if exception or _AROUND_TRACEBACK.match(line):
            self._after = True
            return True
        self._after = self._after and not line.strip()
        return self._after


def _visible(line: bytes) -> bytes:
    """Return what a terminal would show of a line in which carriage returns overwrote text."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]
