"""Texts for a terminal: names and lines of programs, made harmless; rows as aligned columns; places, sizes and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...base.printable import printable

if TYPE_CHECKING:  # rpc loads much, which telegrad ps does without
    from ...rpc.observing import ObservedFrame

LARGEST = 1e21


def columns(rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> str:
    """Return rows as lines with aligned columns, none of which is cut.

    Args:
        rows: the cells; the first row is the heading.
        right: numbers of the columns that are aligned at their right ends.
    """
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = (_row(row, widths, right) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    pairs = enumerate(zip(cells, widths))
    return "  ".join(cell.rjust(width) if place in right else cell.ljust(width) for place, (cell, width) in pairs)


def place(at: ObservedFrame) -> str:
    """Return the words for a place in a program: ``train at train.py:12``."""
    return f"{at.function} at {at.file}:{at.line}"


def size(count: float | None) -> str:
    """Return a number of bytes in words: ``64.0 MiB``; ``-`` if it is not known."""
    if count is None or count != count:
        return "-"
    count = min(max(count, -LARGEST), LARGEST)  # a worker may say anything
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"


def duration(seconds: float) -> str:
    """Return a time in words: ``42s``, ``3m10s``, ``2h05m``, ``4d03h``."""
    if not 0 <= seconds < LARGEST:
        return "-"
    whole = int(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
