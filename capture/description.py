"""``Description``: a plan as data: lines of text, and what a picture shows. Other workers ask for it, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple


class DrawnPart(NamedTuple):
    """Part of a plan as a picture shows it.

    Attributes:
        title: what stands above it.
        memory: of its buffers, in words.
        rows: its calls from top to bottom: a text, and a key of the picture's colours.
        bars: uses of memory: column, first and last row, and whether the memory is a buffer.
        width: of the text about its memory.
    """

    title: str
    memory: str
    rows: Sequence[tuple[str, str]] = ()
    bars: Sequence[tuple[int, int, int, bool]] = ()
    width: int = 190


class Description(NamedTuple):
    """Plan of a function.

    Attributes:
        lines: what was recorded, and what was not.
        parts: of its picture.
    """

    lines: Sequence[str]
    parts: Sequence[DrawnPart] = ()

    def as_json(self) -> str:
        """Return it as a text."""
        return json.dumps(self)

    @classmethod
    def of_json(cls, text: str) -> Description:
        """Return the description of a text that another worker has sent."""
        lines, parts = json.loads(text)
        return cls([str(line) for line in lines], [_part(*each) for each in parts])


def _part(title: Any, memory: Any, rows: Any, bars: Any, width: Any) -> DrawnPart:
    return DrawnPart(
        str(title),
        str(memory),
        [(str(text), str(kind)) for text, kind in rows],
        [(int(column), int(first), int(last), bool(buffer)) for column, first, last, buffer in bars],
        int(width),
    )
