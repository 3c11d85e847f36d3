"""Shows the output of all workers on one terminal, each line behind its worker's name in the worker's colour."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from .lines import LineSplitter
from .tracebacks import TracebackFilter

if TYPE_CHECKING:  # rich is loaded by those who show something: workers import this room, too, and do not
    from rich.console import Console

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")
NARROWEST = 40


class WorkerConsole:
    """Writes to ``stream`` (``None``: standard output), with colours where rich finds them welcome.

    That is on a terminal, or with FORCE_COLOR, and not with NO_COLOR. While ``quiet``, it leaves tracebacks out.
    """

    def __init__(self, workers: Sequence[str], stream: TextIO | None = None) -> None:
        from rich.console import Console

        self._stream = stream or sys.stdout
        console = Console(file=self._stream, highlight=False)
        colours = console.is_terminal and not console.no_color
        width = max(map(len, workers))
        self.columns = max(NARROWEST, console.width - width - len(" | "))
        self._prefixes = [_prefix(console, name.ljust(width), rank) for rank, name in enumerate(workers)]
        self._splitters = [LineSplitter(colours) for _ in workers]
        self._filters = [TracebackFilter() for _ in workers]
        self.quiet = False

    @property
    def due(self) -> float | None:
        """When an incomplete line will have waited long enough."""
        return min((splitter.due for splitter in self._splitters if splitter.due is not None), default=None)

    def write(self, rank: int, data: bytes, now: float) -> None:
        """Shows the lines that ``data`` completes."""
        self._show(rank, self._splitters[rank].feed(data, now))

    def finish(self, rank: int) -> None:
        """Shows the worker's incomplete line, however young."""
        self._show(rank, self._splitters[rank].flush())

    def tick(self, now: float) -> None:
        """Shows the incomplete lines that have waited long enough."""
        for rank, splitter in enumerate(self._splitters):
            self._show(rank, splitter.overdue(now))

    def _show(self, rank: int, lines: list[str]) -> None:
        if self.quiet:
            lines = self._filters[rank].keep(lines)
        if lines:
            text = "".join(f"{self._prefixes[rank]}{line}\n" for line in lines)
            encoding = self._stream.encoding or "utf-8"
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self._stream.flush()


def _prefix(console: "Console", name: str, rank: int) -> str:
    """Rendered once: rich takes longer for a line than a worker needs to write one."""
    from rich.text import Text

    with console.capture() as capture:
        console.print(Text(f"{name} |", style=COLOURS[rank % len(COLOURS)]), end=" ", soft_wrap=True)
    return capture.get()
