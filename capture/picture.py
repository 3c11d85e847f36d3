"""``picture``: a plan as SVG: its calls from top to bottom, and beside them the memory that they use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap
from typing import Any

import numpy as np

from ..core.extend import svg_page
from .blocks import Blocks
from .description import DrawnPart
from .hops import arrived_at
from .memory import last_uses
from .mirrors import node_at, run_node
from .program import array_at, call_whole
from .source import Source
from .tracer import array_in
from .values import Kind, Statement

_ROW, _TEXT, _BAR, _TOP, _MARGIN = 17, 250, 12, 40, 16
_LONGEST, _LETTER = 72, 6.5  # letters in a line of a title, and the width of one
_COLOURS = {"call": "#F3F3F3", "chain": "#DCEBF7", "whole": "#FCE8D5"}
_BUFFER, _NEW = "#7BA7CC", "#C9DCEB"
_SILENT = (array_at, array_in, node_at, arrived_at)  # they only take results apart


def picture(parts: Sequence[DrawnPart]) -> str:
    """Return a picture of the parts of a plan, one below the other.

    Calls of a chain, which run block by block, are blue; operations that run as a whole, and effects, are orange. Each bar on
    the right is a use of a buffer: bars in one column have the same memory. Light bars are large results, whose memory is new.

    Args:
        parts: what to draw.
    """
    elements: list[str] = []
    width = height = 0
    for part in parts:
        drawn, right, below = _draw(part, height)
        elements += drawn
        width, height = max(width, right), below
    return svg_page(width, height, elements)


def drawn_part(title: str, source: Source) -> DrawnPart:
    """Return a program as a picture shows it.

    Args:
        title: what stands above it.
        source: the program.
    """
    rows = list(_rows(source))
    places: dict[int, tuple[int, int]] = {}  # by the index of a statement, its first and last row
    for row, (index, _, _) in enumerate(rows):
        places[index] = places.get(index, (row, row))[0], row
    bars = [(column, begin, end, column < len(source.sizes)) for column, begin, end in _bars(source, places)]
    texts = [(text, kind) for _, text, kind in rows]
    return DrawnPart(title, _memory(source), texts, bars, 330 if source.passing else 190)


def _draw(part: DrawnPart, top: int) -> tuple[list[str], int, int]:
    """Return the elements of a part that begins at a height, and where it ends on the right and below."""
    columns = 1 + max((column for column, _, _, _ in part.bars), default=0)
    title = wrap(part.title, _LONGEST) if not part.memory else [part.title]
    first, right = top + _TOP + _ROW * (len(title) - 1), _MARGIN + _TEXT + 24
    elements = [
        *(_text(_MARGIN, top + 24 + _ROW * line, text, 13) for line, text in enumerate(title)),
        *([_text(right, top + 24, part.memory, 13)] if part.memory else []),
        *(_call(first + _ROW * row, text, _COLOURS.get(kind, "")) for row, (text, kind) in enumerate(part.rows)),
        *(
            f'<rect x="{right + _BAR * column}" y="{first + _ROW * begin + 2}" width="{_BAR - 3}" '
            f'height="{_ROW * (end - begin + 1) - 4}" rx="3" fill="{_BUFFER if buffer else _NEW}"/>'
            for column, begin, end, buffer in part.bars
        ),
    ]
    width = max(right + _BAR * columns, right + part.width, *(round(_MARGIN + _LETTER * len(text)) for text in title))
    return elements, width + _MARGIN, first + _ROW * len(part.rows) + _MARGIN * bool(part.rows)


def _rows(source: Source) -> Iterator[tuple[int, str, str]]:
    """Yield for each call the index of its statement, a text, and a key of the colours."""
    for index, statement in enumerate(source.statements):
        if isinstance(statement, Blocks):
            calls = [part for part in statement.parts if part.kind is not Kind.VIEW]
            yield from ((index, _label(part), "chain") for part in calls)
        elif statement.kind is not Kind.VIEW and statement.function not in _SILENT:
            whole = statement.kind is Kind.EFFECT
            yield index, _label(statement), "whole" if whole else "call"


def _label(statement: Statement) -> str:
    function: Any = statement.function
    if function is call_whole:
        return f"{_name(statement.args[0])} as a whole"
    if function is run_node:
        return "its backward"
    value = statement.result or statement.target
    return _name(function) + (f"  {tuple(value.shape)}" if value is not None and value.shape is not None else "")


def _name(function: Any) -> str:
    owner: Any = getattr(function, "__self__", None)  # add.reduce is a method of add
    name = getattr(function, "__name__", type(function).__name__)
    if isinstance(where := getattr(owner, "where", ""), str) and where:  # NumPy has a function of that name
        return f"{name} {where}"  # it sends to another worker, or takes what it answers
    return f"{owner.__name__}.{name}" if isinstance(owner, np.ufunc) else name


def _bars(source: Source, places: dict[int, tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield the uses of buffers and of new memory: the column, and the first and last row."""
    last = last_uses(source.statements, len(source.statements))
    end = max((row for _, row in places.values()), default=0)
    for index, statement in enumerate(source.statements):
        for value in statement.made():
            column = source.buffer_of(value)
            if column is None and (lane := source.lane_of(value)) is not None:
                column = len(source.sizes) + lane
            if column is not None and index in places:
                used = max(last[storage] for storage in value.storages)
                known = [places[each][1] for each in range(index, used + 1) if each in places]
                yield column, places[index][0], max(known, default=end)


def _memory(source: Source) -> str:
    passing = f", and {source.passing:,} while it runs" if source.passing else ""
    return f"buffers: {sum(source.sizes):,} bytes{passing}"


def _call(y: int, text: str, colour: str) -> str:
    box = f'<rect x="{_MARGIN}" y="{y}" width="{_TEXT}" height="{_ROW - 2}" rx="4" fill="{colour}" stroke="#bbb"/>'
    return box + _text(_MARGIN + 8, y + 11, text, 10)


def _text(x: float, y: float, text: str, size: int) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="#222" text-anchor="start">{escape(text)}</text>'
