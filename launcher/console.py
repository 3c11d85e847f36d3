"""Output of all workers on one terminal, each line behind its worker's name in the worker's colour."""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from .tracebacks import TracebackFilter

if TYPE_CHECKING:  # rich is loaded by processes that show something: workers import this package, too, and do not
    from rich.console import Console

WORKER_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")
LEAST_COLUMNS = 40
PARTIAL_SECONDS = 0.5
MOST_LINE_BYTES = 1 << 14

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_COMMAND = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[0-9;:]*m)")


class WorkerConsole:
    """Console for the workers of one job, with colours on a terminal or with FORCE_COLOR, and without with NO_COLOR.

    Args:
        workers: the workers' names, in order of rank.
        stream: where lines are written; None means standard output.

    Attributes:
        columns: what is left of a terminal's line for a worker's own text.
        quiet: leave tracebacks out.
        wrote_at: monotonic seconds of the last ``write``; 0 before.
        on_closed: called once, when a line could not be written because the stream's reader is gone (``| head``).
    """

    def __init__(self, workers: Sequence[str], stream: TextIO | None = None) -> None:
        from rich.console import Console

        self._stream = stream or sys.stdout
        self._console = console = Console(file=self._stream, highlight=False)
        self._colours = console.is_terminal and not console.no_color
        width = max(map(len, workers))
        self.columns = max(LEAST_COLUMNS, console.width - width - len(" | "))
        self.quiet = False
        self.wrote_at = 0.0
        self.on_closed: Callable[[], None] = lambda: None
        self._closed = False
        self._width = width
        self._prefixes: list[str] = []
        self._splitters: list[LineSplitter] = []
        self._filters: defaultdict[int, TracebackFilter] = defaultdict(TracebackFilter)  # by rank
        for name in workers:
            self.add_worker(name)

    def add_worker(self, name: str) -> None:
        """Show the output of one more worker, of the next rank."""
        self._prefixes.append(_prefix(self._console, name.ljust(self._width), len(self._prefixes)))
        self._splitters.append(LineSplitter(self._colours))

    @property
    def due(self) -> float | None:
        """Time at which ``tick`` has something to show; None if nothing waits."""
        return min((splitter.due for splitter in self._splitters if splitter.due is not None), default=None)

    def write(self, rank: int, data: bytes, now: float) -> None:
        """Show the lines that ``data`` completes.

        Args:
            rank: the worker.
            data: bytes that it wrote.
            now: monotonic seconds.
        """
        self.wrote_at = now
        self._show(rank, self._splitters[rank].feed(data, now))

    def finish(self, rank: int) -> None:
        """Show the worker's partial line at once."""
        self._show(rank, self._splitters[rank].flush())

    def tick(self, now: float) -> None:
        """Show the partial lines that have waited long enough."""
        for rank, splitter in enumerate(self._splitters):
            self._show(rank, splitter.flush_due(now))

    def _show(self, rank: int, lines: list[str]) -> None:
        if self.quiet and lines:
            lines = self._filters[rank].keep(lines)
        if not lines or self._closed:
            return
        text = "".join(f"{self._prefixes[rank]}{line}\n" for line in lines)
        encoding = self._stream.encoding or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self._stream.flush()
        except BrokenPipeError:
            self._closed = True
            self.on_closed()


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


def _prefix(console: "Console", name: str, rank: int) -> str:
    """Return a worker's prefix. It is rendered once: rich takes longer for a line than a worker needs to write one."""
    from rich.text import Text

    with console.capture() as capture:
        console.print(Text(f"{name} |", style=WORKER_COLOURS[rank % len(WORKER_COLOURS)]), end=" ", soft_wrap=True)
    return capture.get()


def _visible(line: bytes) -> bytes:
    """Return what a terminal would show of a line in which carriage returns overwrote text."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]
