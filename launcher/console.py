"""Terminal that shows the output of all workers, each line behind its worker's name in the worker's colour."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from .line_filters import LineSplitter, TracebackFilter

if TYPE_CHECKING:  # rich is loaded by processes that show something: workers import this package, too, and do not
    from rich.console import Console

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")
LEAST_COLUMNS = 40


class WorkerConsole:
    """Console for the workers of one job, with colours on a terminal or with FORCE_COLOR, and without with NO_COLOR.

    Args:
        workers: the workers' names, in order of rank.
        stream: where lines are written; None means standard output.

    Attributes:
        columns: what is left of a terminal's line for a worker's own text.
        quiet: leave tracebacks out.
        on_closed: called once, when a line could not be written because the stream's reader is gone (``| head``).
    """

    def __init__(self, workers: Sequence[str], stream: TextIO | None = None) -> None:
        from rich.console import Console

        self._stream = stream or sys.stdout
        console = Console(file=self._stream, highlight=False)
        colours = console.is_terminal and not console.no_color
        width = max(map(len, workers))
        self.columns = max(LEAST_COLUMNS, console.width - width - len(" | "))
        self.quiet = False
        self.on_closed: Callable[[], None] = lambda: None
        self._closed = False
        self._prefixes = [_prefix(console, name.ljust(width), rank) for rank, name in enumerate(workers)]
        self._splitters = [LineSplitter(colours) for _ in workers]
        self._filters = [TracebackFilter() for _ in workers]

    @property
    def due(self) -> float | None:
        """Time at which ``tick`` has something to show; None if nothing waits."""
        return min((splitter.due for splitter in self._splitters if splitter.due is not None), default=None)

    def write(self, rank: int, data: bytes, now: float) -> None:
        """Show the lines that ``data`` completes."""
        self._show(rank, self._splitters[rank].feed(data, now))

    def finish(self, rank: int) -> None:
        """Show the worker's partial line at once."""
        self._show(rank, self._splitters[rank].flush())

    def tick(self, now: float) -> None:
        """Show the partial lines that have waited long enough."""
        for rank, splitter in enumerate(self._splitters):
            self._show(rank, splitter.flush_due(now))

    def _show(self, rank: int, lines: list[str]) -> None:
        if self.quiet:
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


def _prefix(console: "Console", name: str, rank: int) -> str:
    """Return a worker's prefix. It is rendered once: rich takes longer for a line than a worker needs to write one."""
    from rich.text import Text

    with console.capture() as capture:
        console.print(Text(f"{name} |", style=COLOURS[rank % len(COLOURS)]), end=" ", soft_wrap=True)
    return capture.get()
