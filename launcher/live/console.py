"""Console with a live view below the workers' lines. A line is written in its place, and the view again below it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Literal, TextIO

from ...base.printable import printable
from ..console import WorkerConsole

if TYPE_CHECKING:
    from .rows import LiveRow

RENDER_SECONDS = 1.0
LEAST_LINES = 12  # of a terminal that has a live view
MOST_LAST_LINE = 120
HEADINGS = ("worker", "state", "host", "CPU", "memory", "calls/s", "logged", "progress", "last line")
LEAST_WIDTHS = {"worker": 8, "state": 8, "CPU": 4, "memory": 9, "calls/s": 7, "logged": 14, "progress": 14}
NEEDED_COLUMNS = {
    "host": 140,
    "last line": 120,
    "calls/s": 100,
    "memory": 80,
    "CPU": 80,
}  # of a terminal, for these cells
RIGHT_ALIGNED = ("CPU", "memory", "calls/s")


class LiveConsole(WorkerConsole):
    """Console for the workers of one job, on a terminal. It must be closed.

    Args:
        workers: the workers' names, in order of rank.
        stream: the terminal.
        rows: returns what is known of the workers now.
    """

    def __init__(self, workers: Sequence[str], stream: TextIO, rows: Callable[[], list[LiveRow]]) -> None:
        self._names: list[str] = []
        super().__init__(workers, stream)
        self._terminal = stream
        self._rows = rows
        self._last_lines: dict[str, str] = {}
        self._view = ""
        self._ended = False
        self._shown = 0  # lines of the view on the terminal
        self._render_at = time.monotonic() + RENDER_SECONDS

    def add_worker(self, name: str) -> None:
        super().add_worker(name)
        self._names.append(name)

    @property
    def due(self) -> float | None:
        other = super().due
        return self._render_at if other is None else min(other, self._render_at)

    def tick(self, now: float) -> None:
        super().tick(now)
        if now >= self._render_at and not self._ended:
            self._render_at = now + RENDER_SECONDS
            if (view := self._rendered()) != self._view or not self._shown:
                self.hide()
                self._view = view
                self._draw()

    def tell(self, write: Callable[[], object]) -> None:
        """Call ``write``, which writes lines to the terminal, above the view."""
        self.hide()
        write()
        self._draw()

    def hide(self) -> None:
        """Remove the view from the terminal."""
        if self._shown:
            self._write(f"\r\x1b[{self._shown}A\x1b[J")
            self._shown = 0

    def close(self) -> None:
        """Remove the view for good; lines may still be written."""
        self.hide()
        self._view = ""
        self._ended = True

    def _show(self, rank: int, lines: list[str]) -> None:
        if lines:
            self._last_lines[self._names[rank]] = lines[-1]
            self.tell(lambda: super(LiveConsole, self)._show(rank, lines))

    def _draw(self) -> None:
        if self._view:
            self._write(self._view)
            self._shown = self._view.count("\n")

    def _write(self, text: str) -> None:
        try:
            self._terminal.write(text)
            self._terminal.flush()
        except (BrokenPipeError, UnicodeEncodeError):  # its terminal is gone, or cannot show it
            self._view = ""

    def _rendered(self) -> str:
        rows, (columns, lines) = self._rows(), shutil.get_terminal_size()
        if not rows or lines < LEAST_LINES:
            return ""
        return render(rows, self._last_lines, columns, lines // 2)


def render(rows: Sequence[LiveRow], last_lines: dict[str, str], columns: int, lines: int) -> str:
    """Return the view as text for a terminal.

    Args:
        rows: of all workers.
        last_lines: by worker, the last line that it wrote.
        columns: width of the terminal.
        lines: most lines of the view.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False, expand=True)
    headings = [each for each in HEADINGS if columns >= NEEDED_COLUMNS.get(each, 0)]
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading in RIGHT_ALIGNED else "left"
        # The last line gets the room that the others leave.
        share = 1 if heading == HEADINGS[-1] else None
        table.add_column(heading, no_wrap=True, justify=justify, ratio=share, min_width=LEAST_WIDTHS.get(heading))
    room = max(lines - 2, 1)
    for row in rows[:room]:
        last = printable(Text.from_ansi(last_lines.get(row.worker, "")).plain.strip(), MOST_LAST_LINE)
        cells = (row.worker, row.state, row.host, row.processor, row.memory, row.calls, row.curves, row.progress, last)
        table.add_row(*(Text(cell) for heading, cell in zip(HEADINGS, cells) if heading in headings))
    output = StringIO()
    console = Console(file=output, width=max(columns - 1, 20), force_terminal=True, highlight=False)
    console.print(table)
    if len(rows) > room:
        console.print(Text(f"and {len(rows) - room:,} more workers"))
    return output.getvalue()
