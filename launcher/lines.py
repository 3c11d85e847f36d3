"""Turns the bytes that a worker writes into lines that are fit to stand beside other workers' lines on a terminal.

Complete lines are shown at once; an incomplete one (a prompt, a progress bar) when it has waited ``PATIENCE``
seconds; a very long one in pieces. Of what a carriage return overwrote, the last state is shown. Colours pass, but
codes that would move the cursor, clear the screen or change the character set do not, and bytes that are no text are
shown as ``\\xNN``. No clock and no I/O here.
"""

import re

PATIENCE = 0.5
LONGEST = 1 << 14  # bytes

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_COMMAND = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[0-9;:]*m)")


class LineSplitter:
    """One worker's output; ``colours`` says whether its colours are kept."""

    def __init__(self, colours: bool) -> None:
        self.due: float | None = None  # when to call `overdue`
        self._colours = colours
        self._partial = b""
        self._showed_part = False  # of the line that is under way

    def feed(self, data: bytes, now: float) -> list[str]:
        """The lines that ``data``, received at the time ``now``, completes."""
        *complete, self._partial = (self._partial + data).split(b"\n")
        lines = [line for part in complete for line in self._completed(part)]
        while len(self._partial) > LONGEST:
            lines += self._cut()
        # What waits has waited since its first byte, so that a progress bar that never pauses is seen.
        self.due = None if not self._partial else (now + PATIENCE if complete or self.due is None else self.due)
        return lines

    def overdue(self, now: float) -> list[str]:
        """The incomplete line, if it has waited long enough."""
        return self.flush() if self.due is not None and now >= self.due else []

    def flush(self) -> list[str]:
        """The incomplete line, if there is one."""
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
        end = LONGEST
        while end > LONGEST - 4 and self._partial[end] & 0xC0 == 0x80:  # not inside a UTF-8 character
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


def _visible(line: bytes) -> bytes:
    """What a terminal would show of a line in which carriage returns overwrote text."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]
